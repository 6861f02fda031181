import pg from 'pg'
import { benchOutbox, benchSubscriptions } from '../support/commitpost.ts'
import { runLatency } from '../support/latency-program.ts'

const SETTINGS = { count: 1, order: 'none', batchSize: 500, concurrency: 10 } as const

await runLatency({
  work: async ({ url }, onPayload) => {
    const pool = new pg.Pool({ connectionString: url, max: 10 })
    const worker = benchOutbox(pool).worker(benchSubscriptions(SETTINGS, onPayload))
    await worker.start()
    await worker.active()
    return async () => {
      await worker.stop()
      await pool.end()
    }
  },
  connect: async ({ url }) => {
    const pool = new pg.Pool({ connectionString: url, max: 10 })
    const outbox = benchOutbox(pool)
    return {
      send: (payload) =>
        outbox.inTransaction(pool, (tx) =>
          outbox.publish(tx, 'OrderPlaced', { aggregateId: payload.orderId, payload }),
        ),
      close: () => pool.end(),
    }
  },
})
