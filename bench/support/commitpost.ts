// Commitpost as all benchmarks use it.
import type pg from 'pg'
import {
  createOutbox,
  defineEvents,
  type Outbox,
  type RetentionOptions,
  type Subscription,
  subscription,
  unchecked,
} from '../../src/index.ts'
import { migrateUp, postgresStore } from '../../src/store/postgres/index.ts'
import type { Transaction } from '../../src/store/transaction.ts'
import { type BenchPayload, PAYLOAD_SQL } from './payload.ts'

/** The schema of the benchmarks. */
export const SCHEMA = 'commitpost_bench'

const catalogue = defineEvents({
  OrderPlaced: { stream: 'bench.order', aggregate: 'order', schema: unchecked<BenchPayload>() },
})

/** The catalogue of the benchmarks. */
export type BenchCatalogue = typeof catalogue

/** How the subscriptions of a benchmark are set up. */
export interface BenchSubscriptions {
  readonly count: number
  readonly order: 'none' | 'aggregate'
  readonly batchSize: number
  readonly concurrency: number
}

/** An outbox on the benchmark's schema. */
export function benchOutbox(
  pool: pg.Pool,
  retention?: RetentionOptions,
): Outbox<BenchCatalogue, Transaction> {
  return createOutbox({
    store: postgresStore({ pool, schema: SCHEMA }),
    events: catalogue,
    ...(retention === undefined ? {} : { retention }),
  })
}

/** Subscriptions that hand every event to the handler. */
export function benchSubscriptions(
  { count, order, batchSize, concurrency }: BenchSubscriptions,
  onEvent: (payload: BenchPayload) => void,
): readonly Subscription<BenchCatalogue, Transaction>[] {
  return Array.from({ length: count }, (_, index) =>
    subscription<BenchCatalogue, Transaction>(`bench-${index}`, {
      order,
      batchSize,
      concurrency,
      on: {
        OrderPlaced: async (event) => {
          onEvent(event.payload)
        },
      },
    }),
  )
}

/** An empty, migrated schema in which the subscriptions are registered. */
export async function prepareSchema(pool: pg.Pool, subscriptions: BenchSubscriptions): Promise<void> {
  await pool.query(`drop schema if exists ${SCHEMA} cascade`)
  await migrateUp(pool, { schema: SCHEMA })
  const worker = benchOutbox(pool).worker(benchSubscriptions(subscriptions, () => undefined))
  await worker.start()
  await worker.active()
  await worker.stop()
}

/** Publishes a backlog with one statement. */
export async function loadBacklog(pool: pg.Pool, events: number, keys: number): Promise<void> {
  await pool.query(
    `insert into ${SCHEMA}.outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
     select 'bench.order', 'OrderPlaced', 'order', (i % $2)::text, ${PAYLOAD_SQL}
       from generate_series(1, $1::int) i`,
    [events, keys],
  )
}
