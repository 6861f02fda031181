import pg from 'pg'
import {
  type BenchSubscriptions,
  benchOutbox,
  benchSubscriptions,
  loadBacklog,
  prepareSchema,
  SCHEMA,
} from '../support/commitpost.ts'
import { assertCount, countOf, runContender } from '../support/drain-program.ts'
import type { DrainTask } from '../support/protocol.ts'

await runContender({
  load: async (pool, task) => {
    await prepareSchema(pool, subscriptionsOf(task))
    await loadBacklog(pool, task.events, task.keys)
  },
  open: async (task) => {
    const pool = new pg.Pool({ connectionString: task.url, max: 10 })
    let onEvent: () => void = () => undefined
    const worker = benchOutbox(pool).worker(benchSubscriptions(subscriptionsOf(task), () => onEvent()))
    return {
      start: async (onHandled) => {
        onEvent = onHandled
        await worker.start()
      },
      stop: () => worker.stop(),
      close: () => pool.end(),
    }
  },
  verify: async (pool, { events, subscriptions }) => {
    const done = await countOf(pool, `select count(*) from ${SCHEMA}.outbox_delivery where status = 'DONE'`)
    assertCount('deliveries that are DONE', done, events * subscriptions)
  },
})

function subscriptionsOf({ subscriptions, settings }: DrainTask): BenchSubscriptions {
  return {
    count: subscriptions,
    order: settings['order'] === 'aggregate' ? 'aggregate' : 'none',
    batchSize: Number(settings['batchSize']),
    concurrency: Number(settings['concurrency']),
  }
}
