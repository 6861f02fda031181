import type pg from 'pg'
import {
  createOutbox,
  type Observer,
  type OutboxEvent,
  type SubscriptionContext,
  type SubscriptionOptions,
  type Transaction,
  type WorkerEvent,
  type WorkerOptions,
} from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { createTestDatabaseWithTables } from '../support/database.ts'
import { events, type HostileEvents, type HostileOutbox } from './scene.ts'

/** What a handler of these rows can use. */
export interface Around {
  readonly pool: pg.Pool
  readonly schema: string
  readonly url: string
  readonly outbox: HostileOutbox
  readonly event: OutboxEvent
  readonly ctx: SubscriptionContext<HostileEvents, Transaction>
}

/** How an event is delivered to a hostile handler. */
export interface Delivering {
  readonly handler: (around: Around) => unknown
  readonly options?: Partial<SubscriptionOptions<HostileEvents, Transaction>>
  readonly worker?: WorkerOptions
  /** What is published instead of a good payload. */
  readonly payload?: unknown
  /** Publishes instead of `publish`, as other programs do. */
  readonly insert?: string
  /** Which worker event ends the wait. */
  readonly until?: (event: WorkerEvent) => boolean
  /** Looks at the tables when all is over. */
  readonly afterwards?: (pool: pg.Pool) => Promise<void>
}

/** What is left of it in the tables. */
export interface Delivered {
  readonly status: string
  readonly code: string | null
  readonly message: string | null
}

const isOver = ({ kind }: WorkerEvent): boolean => kind === 'handled' || kind === 'dead'

/** Publishes one event on a database of its own, delivers it to the handler, and tells what became of it. */
export async function deliver(delivering: Delivering): Promise<Delivered> {
  await using database = await createTestDatabaseWithTables()
  const { pool, schema, url } = database
  const outbox = createOutbox({ store: postgresStore({ pool, schema }), events })
  let resolve: () => void = () => undefined
  const over = new Promise<void>((done) => {
    resolve = done
  })
  const { until = isOver, payload = { n: 1 } } = delivering
  const observer: Observer = (event) => (until(event) ? resolve() : undefined)
  const hostile = outbox.subscription('hostile', {
    maxAttempts: 1,
    on: { '*': (event, ctx) => delivering.handler({ pool, schema, url, outbox, event, ctx }) },
    ...delivering.options,
  })
  const observers = [...(delivering.worker?.observers ?? []), observer]
  const worker = outbox.worker([hostile], { ...delivering.worker, observers })
  await worker.active()
  if (delivering.insert === undefined) {
    await outbox.inTransaction(pool, (tx) => outbox.publish(tx, 'OrderPlaced', { aggregateId: 1, payload }))
  } else {
    await pool.query(delivering.insert)
    worker.wake()
  }
  await over
  await worker.stop({ drainMs: 0 })
  await delivering.afterwards?.(pool)
  const { rows } = await pool.query(
    'select status, last_error_code as code, last_error_message as message from outbox_delivery',
  )
  return rows[0]
}
