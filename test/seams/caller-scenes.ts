import pg from 'pg'
import type { Transaction } from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import type { Scene } from './scene.ts'
import { events, identityOf, type SceneEvent, toInput } from './scene-events.ts'
import { asOperation } from './seam-pool.ts'
import type { Process, Stage } from './stage.ts'

/** What a publisher does: its transaction is rolled back, or run until it is known to be committed. */
export const publishing: Scene = {
  name: 'publish',
  subscription: { order: 'aggregate' },
  operations: ['publish', 'publish and roll back'],
  prepare: async (stage) => {
    await stage.subscribe()
    stage.owes([...events('a', 'nothing', 2), ...events('b', 'nothing')])()
  },
  live: publishTwice,
  rescue: publishTwice,
  // What was written beside the events is there exactly when they are.
  inspect: async (stage) => {
    const { rows } = await stage.db.pool.query('select 1 from effect where worker = $1', ['business'])
    const writes = stage.owed.length
    return rows.length === writes ? [] : [`${rows.length} business rows for ${writes} events`]
  },
}

/** The naive form: the rows first, and the events in a transaction of their own. Nobody knows that one is missing. */
export const publishingApart: Scene = {
  ...publishing,
  name: 'publish, in two transactions',
  operations: ['publish'],
  live: (stage, { outbox, pool }) =>
    asOperation('publish', async () => {
      await outbox.inTransaction(pool, (tx) => writeRows(stage, tx))
      await outbox.inTransaction(pool, (tx) => outbox.publishAll(tx, stage.owed.map(toInput)))
    }),
  rescue: async () => {},
}

class ChangedMind extends Error {}

/** A transaction that is rolled back, and one that is run until it is known to be committed. */
async function publishTwice(stage: Stage, { outbox, pool }: Process): Promise<void> {
  const unwanted = events('a', 'nothing', 1, 9)
  stage.journal.begun(unwanted.map(identityOf))
  await asOperation('publish and roll back', () =>
    outbox.inTransaction(pool, async (tx) => {
      await outbox.publishAll(tx, unwanted.map(toInput))
      throw new ChangedMind()
    }),
  ).catch((error: unknown) => error)
  await publishOwed(stage, { outbox, pool }).catch(() => publishOwed(stage, { outbox, pool }))
}

function publishOwed(stage: Stage, { outbox, pool }: Pick<Process, 'outbox' | 'pool'>): Promise<unknown> {
  return asOperation('publish', () =>
    outbox.inTransaction(pool, async (tx) => {
      await writeRows(stage, tx)
      await outbox.publishAll(tx, stage.owed.map(toInput), { onDuplicate: 'ignore' })
    }),
  )
}

/** What the business transaction is about: one row for each event, unless they are there already. */
async function writeRows(stage: Stage, tx: Transaction): Promise<void> {
  await tx.query(
    `insert into effect (n, event_id, worker)
     select 0, gen_random_uuid(), 'business' from generate_series(1, $1::text::integer)
      where not exists (select 1 from effect where worker = 'business')`,
    [String(stage.owed.length)],
  )
}

/** Archives what every subscription is done with, beside what is not done, and beside a dead letter. */
export const retaining: Scene = {
  name: 'retain',
  subscription: { order: 'aggregate' },
  operations: ['retain', 'retain after 0', 'retain after 1', 'retain after 2'],
  prepare: async (stage) => {
    await stage.subscribe()
    await stage.publish(
      events('a', 'nothing', 2),
      events('b', 'dies until mended'),
      events('b', 'nothing', 1, 1),
    )
    const before = stage.process('before')
    await before.start()
    await stage.drained()
    await before.worker.stop()
    await stage.publish(events('c', 'nothing'))
  },
  live: (stage, process) => retain(stage, process).catch(() => retain(stage, process)),
  rescue: async (stage, process) => {
    // Whoever held the run is gone, and time passes.
    await stage.db.pool.query('update outbox_retention_run set held_until = now()')
    await retain(stage, process)
  },
  inspect: async (stage) => {
    const list = async (from: string): Promise<string> => {
      const { rows } = await stage.db.pool.query<{ list: string | null }>(
        `select string_agg(aggregate_id, ',' order by aggregate_id) as list from ${from}`,
      )
      return rows[0]?.list ?? ''
    }
    const kept = await list('outbox_event')
    const archived = await list('seam_archive')
    const { rows } = await stage.db.pool.query<{ sum: string }>(
      `select sum(affected) from outbox_operator_log where action = 'retain'`,
    )
    return [
      ...(kept === 'b,b,c' ? [] : [`kept ${kept}, not what was still needed`]),
      ...(archived === 'a,a' ? [] : [`archived ${archived}, not what nobody needed, once`]),
      ...(rows[0]?.sum === '2' ? [] : [`recorded ${rows[0]?.sum}, not as many as went`]),
    ]
  },
}

/**
 * In batches of one: there are seams between them. A step is called by what has gone before it. On a slow machine there
 * are more, which only look for what may go: they are steps of the same name.
 */
async function retain({ db: { schema } }: Stage, { id, pool }: Process): Promise<void> {
  const { retention } = postgresStore({ pool, schema })
  const archive = { schema, table: 'seam_archive' }
  const settings = { keepSeconds: 0, archive, mask: null, requireExport: false }
  const runId = await asOperation('retain', async () => {
    await retention.ensureArchive(archive)
    return retention.beginRetention({ policy: 'p', stream: '*', before: [], ...settings }, null)
  })
  const pace = { batchSize: 1, pauseMs: 0, share: 1 }
  for (let gone = 0; ; ) {
    const { state, archived } = await asOperation(`retain after ${gone}`, () =>
      retention.stepRetention(runId as string, id, pace, null),
    )
    if (state === 'done') return
    gone += archived
  }
}

/** Keeps, for each stage, the commit of a publisher who has not seen what is registered. */
class LateCommits {
  readonly #commits = new WeakMap<Stage, () => Promise<void>>()

  async begin(stage: Stage, owed: readonly SceneEvent[]): Promise<void> {
    this.#commits.set(stage, await publishOpen(stage, owed))
  }

  /** The worker starts; only then the publisher commits. */
  async join(stage: Stage, process: Process, meanwhile = async (): Promise<void> => {}): Promise<void> {
    await process.worker.start().catch(() => process.worker.start())
    await meanwhile()
    await this.#commits.get(stage)?.()
    await process.worker.active()
  }
}

/** A subscription that is new, while a publisher that has not seen it is about to commit. */
export function registering(startFrom: 'now' | 'beginning'): Scene {
  const late = new LateCommits()
  return {
    name: `register, from ${startFrom}`,
    subscription: { order: 'aggregate', startFrom },
    operations: startFrom === 'now' ? ['register', 'advanceJoining'] : ['advanceJoining'],
    prepare: async (stage) => {
      const earlier = events('a', 'nothing')
      if (startFrom === 'beginning') await stage.publish(earlier)
      await late.begin(stage, events('a', 'nothing', 2, 1))
    },
    live: async (stage, process) => {
      await late.join(stage, process)
      await stage.publish(events('a', 'nothing', 1, 3))
      await stage.drained()
    },
    rescue: (stage, process) => late.join(stage, process),
    inspect: async () => [],
  }
}

/**
 * An ordered subscription that takes more than before, for the first time or while an earlier time still goes on, while
 * a publisher that has not seen it is about to commit. It is served meanwhile.
 */
export function widening(time: 'first' | 'second'): Scene {
  const late = new LateCommits()
  return {
    name: `widen, for the ${time} time`,
    subscription: { order: 'aggregate' },
    operations: time === 'first' ? ['register', 'advanceJoining'] : ['register'],
    prepare: async (stage) => {
      await stage.subscribe(['StepPlanned'])
      await late.begin(stage, events('a', 'nothing', 2))
      if (time === 'second') await stage.register(['StepPlanned', 'StepForgotten'])
    },
    live: async (stage, process) => {
      await late.join(stage, process, async () => {
        await stage.publish(events('b', 'nothing', 2))
        await stage.drained()
      })
      await stage.publish(events('a', 'nothing', 1, 2))
      await stage.drained()
    },
    rescue: (stage, process) => late.join(stage, process),
    inspect: async () => [],
  }
}

/** Publishes on a connection of its own and leaves the transaction open. Returns its commit, which works once. */
async function publishOpen(stage: Stage, owed: readonly SceneEvent[]): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: stage.db.url })
  client.on('error', () => undefined)
  await client.connect()
  await client.query('begin')
  for (const { eventId, key, seq, does } of owed) {
    await client.query(
      `insert into outbox_event (event_id, stream, event_type, aggregate_type, aggregate_id, payload)
       values ($1, 'seam.step', 'StepTaken', 'walk', $2, $3)`,
      [eventId, key, JSON.stringify({ seq, does })],
    )
  }
  const conclude = stage.owes(owed)
  let committed: Promise<void> | null = null
  return () => {
    committed ??= client.query('commit').then(() => {
      conclude()
      return client.end()
    })
    return committed
  }
}
