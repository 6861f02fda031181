import type pg from 'pg'
import type { Settlement } from '../../../src/delivery/delivery.ts'
import { createProof, type Proof } from '../../../src/inspect/proof.ts'
import { type Clock, systemClock } from '../../../src/runtime/clock.ts'
import { postgresStore } from '../../../src/store/postgres/postgres-store.ts'
import { PostgresWorkerStore } from '../../../src/store/postgres/worker-store.ts'
import type { SubscriptionProof } from '../../../src/store/proof-store.ts'
import type { RegisteredSubscription } from '../../../src/store/subscription-store.ts'
import { claim, DONE, settled } from '../contract/helpers.ts'
import {
  createOutboxDatabase,
  insertEvent,
  inTransaction,
  type OutboxDatabase,
  type PlainEvent,
} from './fixtures.ts'

/** A migrated schema with what the proof needs: a worker to deliver, and the proof itself. */
export interface ProofDatabase extends OutboxDatabase {
  readonly worker: PostgresWorkerStore
  readonly proof: Proof
}

export async function createProofDatabase(): Promise<ProofDatabase> {
  const db = await createOutboxDatabase()
  const worker = new PostgresWorkerStore({ pool: db.pool, own: false }, db.quoted, systemClock)
  return { ...db, worker, proof: proofOn(db.pool, db.schema) }
}

/** The proof over another pool, or with a clock or a catalogue of its own. */
export function proofOn(
  pool: pg.Pool,
  schema: string,
  {
    clock = systemClock,
    types = null,
  }: { readonly clock?: Clock; readonly types?: readonly string[] | null } = {},
): Proof {
  return createProof(postgresStore({ pool, schema, clock }), () => types)
}

/** Publishes so many events, each in a transaction of its own. Returns their ids. */
export async function publish(
  db: OutboxDatabase,
  count: number,
  event: PlainEvent = {},
): Promise<readonly string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n += 1) ids.push(await insertEvent(db.pool, event))
  return ids
}

/** Claims up to `limit` deliveries and lets them all end like this. */
export async function settle(
  db: ProofDatabase,
  subscription: RegisteredSubscription,
  limit: number,
  settlement: Settlement = DONE,
): Promise<void> {
  const claimed = await claim(db.worker, subscription, 'w', limit)
  await db.worker.settle(claimed.map((delivery) => settled(delivery, settlement)))
}

/** Does what only a superuser can: with triggers and all that they guard switched off. */
export function sabotage(db: OutboxDatabase, sql: string, values: readonly unknown[] = []): Promise<void> {
  return inTransaction(db, async (client) => {
    await client.query('set local session_replication_role = replica')
    const { rowCount } = await client.query(sql, [...values])
    if (rowCount === 0) throw new Error(`the sabotage touched nothing: ${sql}`)
  })
}

/** The proof of one subscription. */
export async function proofOf(db: ProofDatabase, subscription = 'sub'): Promise<SubscriptionProof> {
  const { subscriptions } = await db.proof.verify({ subscription })
  return subscriptions[0] as SubscriptionProof
}
