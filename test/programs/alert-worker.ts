import { createOutbox, fixed, runUntilSignal, webhookSink } from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { type AlertWorkerConfig, shopOrders } from '../support/alert-worker-config.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'

// A worker that tells: node alert-worker.js <AlertWorkerConfig as JSON>
const config = JSON.parse(process.argv[2] ?? '{}') as AlertWorkerConfig
process.stdin.on('end', () => process.exit(70)).resume() // whoever started this is gone

const pool = sturdyPool({ connectionString: config.url })
const store = postgresStore({ pool, schema: config.schema })
const outbox = createOutbox({ store, events: shopOrders })
const worker = outbox.worker(
  [
    outbox.subscription('shipping', {
      maxAttempts: 1,
      retry: fixed(0),
      batchSize: 1,
      on: {
        OrderPlaced: () => {
          throw new Error(`refused by ${config.workerId}`)
        },
      },
    }),
  ],
  {
    workerId: config.workerId,
    leaseMs: 3_000,
    alerts: {
      sinks: [webhookSink({ url: config.receiver, secret: config.secret })],
      unresolved: config.unresolved,
      everyMs: 100,
      workerMissingMs: 10_000,
    },
  },
)
const running = runUntilSignal(worker)
await worker.active()
process.stdout.write(`${JSON.stringify({ kind: 'active' })}\n`)
await running
process.stdin.unref()
await pool.end()
