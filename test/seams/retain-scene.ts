import { systemClock } from '../../src/index.ts'
import { carryOut } from '../../src/retain/carry-out.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import type { RetentionStore } from '../../src/store/retention-store.ts'
import type { Scene } from './scene.ts'
import { events } from './scene-events.ts'
import { asOperation, namingOperations } from './seam-pool.ts'
import type { Process, Stage } from './stage.ts'

/** Archives what every subscription is done with, beside what is not done, and beside a dead letter. */
export const retaining: Scene = {
  name: 'retain',
  subscription: { order: 'aggregate' },
  operations: [
    'ensureArchive',
    'beginRetention',
    'stepRetention, after 0',
    'stepRetention, after 1',
    'stepRetention, after 2',
  ],
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

/** In batches of one: there are seams between them. */
async function retain({ db: { schema } }: Stage, { id, pool }: Process): Promise<void> {
  const store = steppingByNames(postgresStore({ pool, schema }).retention)
  const archive = { schema, table: 'seam_archive' }
  const settings = { keepSeconds: 0, archive, mask: null, requireExport: false }
  await store.ensureArchive(archive)
  const runId = await store.beginRetention({ policy: 'p', stream: '*', before: [], ...settings }, null)
  await carryOut({
    store,
    clock: systemClock,
    runId: runId as string,
    stepper: id,
    pace: { batchSize: 1, pauseMs: 0, share: 1 },
    act: null,
    signal: new AbortController().signal,
    onStep: () => undefined,
    waitsForOthers: true,
  })
}

/**
 * A step is called by what has gone before it. On a slow machine there are more, which only look for what may go: they are steps
 * of the same name.
 */
function steppingByNames(retention: RetentionStore): RetentionStore {
  const named = namingOperations(retention)
  let gone = 0
  const stepRetention: RetentionStore['stepRetention'] = async (...args) => {
    const step = await asOperation(`stepRetention, after ${gone}`, () => retention.stepRetention(...args))
    gone += step.archived
    return step
  }
  return new Proxy(named, {
    get: (target, name) => (name === 'stepRetention' ? stepRetention : Reflect.get(target, name, target)),
  })
}
