import pg from 'pg'
import { DuplicateEventError, type Transaction } from '../../src/index.ts'
import { withIds } from './known-ids.ts'
import type { Scene } from './scene.ts'
import { events, identityOf, type SceneEvent, toInput, toNewInput } from './scene-events.ts'
import { asOperation } from './seam-pool.ts'
import type { Process, Stage } from './stage.ts'

/** How a publisher publishes, and what. */
interface Publishing {
  readonly name: string
  readonly owed: () => readonly SceneEvent[]
  /** Writes events on a transaction. */
  publish(process: Process, tx: Transaction, owed: readonly SceneEvent[]): Promise<unknown>
  /** Without business rows all of a transaction is sent at its end. */
  readonly writes: 'rows and events' | 'events alone'
}

/** What a publisher does: its transaction is rolled back, or run until it is known to be committed. */
function publishingBy(way: Publishing): Scene {
  const hasRows = way.writes === 'rows and events'
  const live = (stage: Stage, process: Process): Promise<void> => rollBackAndPublish(stage, process, way)
  return {
    name: way.name,
    subscription: { order: 'aggregate', notify: true },
    // Where nothing was sent there is nothing to roll back.
    operations: hasRows ? ['publish', 'publish and roll back'] : ['publish'],
    prepare: async (stage) => {
      await stage.subscribe()
      stage.owes(way.owed())()
    },
    live,
    rescue: live,
    // What was written beside the events is there exactly when they are.
    inspect: async (stage) => {
      const { rows } = await stage.db.pool.query('select 1 from effect where worker = $1', ['business'])
      const writes = hasRows ? stage.owed.length : 0
      return rows.length === writes ? [] : [`${rows.length} business rows for ${writes} events`]
    },
  }
}

const three = (): readonly SceneEvent[] => [...events('a', 'nothing', 2), ...events('b', 'nothing')]

/** What may be there already is sent at once. */
const publishing: Scene = publishingBy({
  name: 'publish',
  owed: three,
  publish: ({ outbox }, tx, owed) => outbox.publishAll(tx, owed.map(toInput), { onDuplicate: 'ignore' }),
  writes: 'rows and events',
})

/** New events are kept back, and go in one write with COMMIT and with what tells workers. */
const keepingBack = (name: string, owed: () => readonly SceneEvent[], writes: Publishing['writes']): Scene =>
  publishingBy({
    name,
    owed,
    publish: ({ outbox }, tx, some) =>
      withIds(
        some.map(({ eventId }) => eventId),
        () => outbox.publishAll(tx, some.map(toNewInput)),
      ),
    writes,
  })

export const publishingScenes: readonly Scene[] = [
  publishing,
  keepingBack('publish with COMMIT', three, 'rows and events'),
  keepingBack('publish and nothing else', () => events('a', 'nothing'), 'events alone'),
]

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
async function rollBackAndPublish(stage: Stage, process: Process, way: Publishing): Promise<void> {
  const unwanted = events('a', 'nothing', 1, 9)
  stage.journal.begun(unwanted.map(identityOf))
  const write = async (tx: Transaction, some: readonly SceneEvent[]): Promise<void> => {
    if (way.writes === 'rows and events') await writeRows(stage, tx)
    await way.publish(process, tx, some)
  }
  await asOperation('publish and roll back', () =>
    process.outbox.inTransaction(process.pool, async (tx) => {
      await write(tx, unwanted)
      throw new ChangedMind()
    }),
  ).catch((error: unknown) => error)
  const publish = (): Promise<void> =>
    asOperation('publish', () =>
      process.outbox.inTransaction(process.pool, (tx) => write(tx, stage.owed)),
    ).catch(unlessThere)
  await publish().catch(publish)
}

/** That events are there already is an answer too: they were committed, with the rows beside them. */
function unlessThere(error: unknown): void {
  if (!(error instanceof DuplicateEventError)) throw error
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
