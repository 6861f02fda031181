import type pg from 'pg'
import type { ManualClock } from '../../src/runtime/manual-clock.ts'
import type { PgPool } from '../../src/store/postgres/client.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import type { Transaction } from '../../src/store/transaction.ts'
import { createOutboxRepository, type OutboxRepository } from '../../src/worker/outbox-repository.ts'
import { type Hold, SteppingPool } from '../hazards/stepping-pool.ts'
import { SeamClient } from '../seams/seam-client.ts'
import { namingOperations, SeamPool } from '../seams/seam-pool.ts'
import { comes } from '../support/patience.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { fitForWorkers } from '../support/worker-url.ts'
import type { PostgresOutbox, shopEvents } from './postgres-outbox.ts'

/** A repository of a test. */
export type Repository = OutboxRepository<typeof shopEvents, Transaction>
interface Options {
  readonly maxAttempts?: number
  readonly leaseMs?: number
  readonly clock?: ManualClock
}

/** What gives back, retries or lets die. */
export const SETTLING_FAILED = /insert into \S*outbox_dead_letter/

/** A repository on this pool, of a subscription that is active. */
export async function repositoryOn(
  { outbox, pool, database: { schema } }: PostgresOutbox,
  ofRepository: PgPool,
  options: Options = {},
): Promise<Repository> {
  const repository = createOutboxRepository({
    outbox,
    store: namingOperations(postgresStore({ pool: ofRepository, schema })),
    subscription: 'poller',
    retry: { delayMs: () => 0 },
    ...options,
  })
  await comes('the subscription is active', async () => {
    await repository.findPending(1)
    const active = await pool.query(`select 1 from outbox_subscription where state = 'active'`)
    return active.rows.length === 1
  })
  return repository
}

/** How it connects. */
export const connection = ({ database: { url } }: PostgresOutbox): pg.PoolConfig => ({
  connectionString: fitForWorkers(url),
  max: 4,
})

interface Scene extends AsyncDisposable {
  readonly repository: Repository
}

/** Single answers of its statements can be lost. */
export async function withSeams(
  postgres: PostgresOutbox,
  options: Options = {},
): Promise<Scene & { loseAnswer(seam: string): Promise<void> }> {
  const pool = new SeamPool(sturdyPool({ ...connection(postgres), Client: SeamClient }))
  const loseAnswer = (seam: string): Promise<void> => pool.trap(seam, 'outcome-unknown', async () => {})
  const repository = await repositoryOn(postgres, pool, options)
  return { repository, loseAnswer, [Symbol.asyncDispose]: () => closing(repository, pool) }
}

/** It can be stopped before single statements. */
export async function withSteps(
  postgres: PostgresOutbox,
  options: Options = {},
): Promise<Scene & { readonly pool: SteppingPool }> {
  const pool = new SteppingPool(sturdyPool(connection(postgres)))
  const repository = await repositoryOn(postgres, pool, options)
  return { repository, pool, [Symbol.asyncDispose]: () => closing(repository, pool) }
}

async function closing(repository: Repository, pool: { end(): Promise<void> }): Promise<void> {
  await repository.close().catch(() => undefined)
  await pool.end()
}

/** What it finds, by aggregate. */
export async function find(repository: Repository, limit = 100): Promise<readonly string[]> {
  return (await repository.findPending(limit)).map(({ aggregateId }) => aggregateId)
}

/** What it finds, by id. */
export async function findIds(repository: Repository, limit = 100): Promise<readonly string[]> {
  return (await repository.findPending(limit)).map(({ id }) => id)
}

/** What a reader that vanished leaves: deliveries that have to run alone. */
export async function suspect({ pool }: PostgresOutbox): Promise<void> {
  await pool.query(
    `update outbox_delivery set fresh = false, held = true, suspect = true, next_retry_at = now() where status = 'PENDING'`,
  )
}

/** What the tests look at. */
interface Row {
  readonly status: string
  readonly attempt_count: number
  readonly suspect: boolean
}

/** All deliveries, in order. */
export async function rows({ pool }: PostgresOutbox): Promise<readonly Row[]> {
  const result = await pool.query<Row>(
    'select status, attempt_count, suspect from outbox_delivery order by id',
  )
  return result.rows
}

/** Only how they stand. */
export const statuses = async (postgres: PostgresOutbox): Promise<readonly string[]> =>
  (await rows(postgres)).map(({ status }) => status)

/** Somebody else has the delivery locked, from now until that is called. */
export async function lockDeliveries({ pool }: PostgresOutbox): Promise<() => Promise<void>> {
  const client = await pool.connect()
  await client.query('begin')
  await client.query('select 1 from outbox_delivery for update')
  return async () => {
    await client.query('rollback')
    client.release()
  }
}

/** Stops it there, does this, and lets it go on. */
export async function meanwhile<Result>(hold: Hold, work: () => Promise<Result>): Promise<Result> {
  await hold.reached
  const result = await work()
  hold.go()
  return result
}

/** What a statement is refused with whose answer is lost. */
export const BROKEN_OFF = 'Connection terminated unexpectedly'

/** All leases end now. */
export async function lapseAll({ pool }: PostgresOutbox): Promise<void> {
  await pool.query(`
    update outbox_delivery set locked_until = clock_timestamp() where status = 'PROCESSING';
    update outbox_lease set until = clock_timestamp()`)
}
