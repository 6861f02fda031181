import type pg from 'pg'
import type { NewEvent } from '../../../src/event/event.ts'
import { type QuotedSchema, quoteSchema } from '../../../src/store/postgres/identifiers.ts'
import type { Transaction } from '../../../src/store/transaction.ts'
import {
  createTestDatabaseWithTables,
  type TestDatabase,
  type TestDatabaseOptions,
} from '../../support/database.ts'
import { eventIdForLayout } from '../../support/install-tables.ts'

/** A migrated schema of its own, named by its plain name in `schema` and ready for SQL in `quoted`. */
export interface OutboxDatabase extends TestDatabase {
  readonly quoted: QuotedSchema
}

export async function createOutboxDatabase(options?: TestDatabaseOptions): Promise<OutboxDatabase> {
  const database = await createTestDatabaseWithTables(options)
  return { ...database, quoted: quoteSchema(database.schema) }
}

/** Anything that runs a statement: the pool, or one connection of it. */
export type Queryable = Pick<pg.Pool | pg.PoolClient, 'query'>

export interface Subscribing {
  readonly name?: string
  readonly streamLike?: readonly string[] | null
  readonly eventTypes?: readonly string[] | null
  readonly orderBy?: 'none' | 'aggregate' | 'total'
  readonly onDead?: 'block' | 'continue'
  readonly state?: 'joining' | 'active' | 'retired'
}

/** An active subscription, written as registration would leave it. Returns its id. */
export async function subscribe(db: OutboxDatabase, options: Subscribing = {}): Promise<number> {
  const orderBy = options.orderBy ?? 'none'
  const streamLike = options.streamLike ?? null
  const { rows } = await db.pool.query<{ id: number }>(
    `insert into outbox_subscription (name, streams, stream_like, event_types, order_by, lanes, on_dead, max_attempts,
            start_from, state, joined_snapshot, retired_at, retired_by)
     select $1, $2, $2, $3, $4, $5, $6, 3, 'now', $7, pg_current_snapshot(), t.at, t.by
       from (select case when $7 = 'retired' then now() end as at, case when $7 = 'retired' then 'kim' end as by) t
     returning id`,
    [
      options.name ?? 'sub',
      streamLike,
      options.eventTypes ?? null,
      orderBy,
      orderBy === 'none' ? 0 : 4,
      options.onDead ?? 'block',
      options.state ?? 'active',
    ],
  )
  return (rows[0] as { id: number }).id
}

export interface PlainEvent {
  readonly eventId?: string
  readonly stream?: string
  readonly type?: string
  readonly aggregateId?: string
  readonly orderingKey?: string | null
  readonly sequenced?: boolean
}

/** Publishes as any program in any language may: by a plain INSERT. Returns the event's id. */
export async function insertEvent(client: Queryable, event: PlainEvent = {}): Promise<string> {
  const eventId = event.eventId ?? eventIdForLayout()
  await client.query(
    `insert into outbox_event (event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, payload)
     values ($1, $2, $3, 'order', $4, $5, $6, '{"total": 1}')`,
    [
      eventId,
      event.stream ?? 'shop.order',
      event.type ?? 'OrderPlaced',
      event.aggregateId ?? '1',
      event.orderingKey ?? null,
      event.sequenced ? 1 : null,
    ],
  )
  return eventId
}

/** Every value of the first column. */
export async function column<Value = unknown>(
  client: Queryable,
  sql: string,
  values: unknown[] = [],
): Promise<Value[]> {
  const { rows } = await client.query<{ value: Value }[]>({ text: sql, values, rowMode: 'array' })
  return rows.map((row) => (row as unknown as [Value])[0])
}

/** The first column of the first row. */
export async function one<Value = unknown>(
  client: Queryable,
  sql: string,
  values: unknown[] = [],
): Promise<Value> {
  return (await column<Value>(client, sql, values))[0] as Value
}

/** Runs `work` on one connection, inside a transaction that is rolled back. */
export async function inRolledBack<Result>(
  db: OutboxDatabase,
  work: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await db.pool.connect()
  try {
    await client.query('begin')
    return await work(client)
  } finally {
    await client.query('rollback')
    client.release()
  }
}

/** Runs `work` on one connection, inside a transaction that is committed. */
export async function inTransaction<Result>(
  db: OutboxDatabase,
  work: (client: pg.PoolClient) => Promise<Result>,
  begin = 'begin',
): Promise<Result> {
  const client = await db.pool.connect()
  try {
    await client.query(begin)
    const result = await work(client)
    await client.query('commit')
    return result
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

/** The SQLSTATE a statement is refused with, or null when it is not. */
export async function refusal(attempt: Promise<unknown>): Promise<string | null> {
  try {
    await attempt
    return null
  } catch (error) {
    return String((error as { code?: unknown }).code)
  }
}

/** An UPDATE that makes deliveries DEAD, with the dead letters that belong to them. Returns their ids and positions. */
export function withLetters(update: string): string {
  return `with dead as (${update} returning *)
     insert into outbox_dead_letter (subscription, subscription_id, lane, position, event_id, stream, event_type,
            schema_version, aggregate_type, aggregate_id, ordering_key, payload, headers, occurred_at, error_code,
            error_message, attempt_history, retry_count)
     select s.name, d.subscription_id, d.lane, d.id, e.event_id, e.stream, e.event_type, e.schema_version,
            e.aggregate_type, e.aggregate_id, d.ordering_key, e.payload, e.headers, e.occurred_at, d.last_error_code,
            coalesce(d.last_error_message, ''),
            '[{"attempt": 1, "at": "2026-01-02T03:04:05Z", "worker": "w1", "durationMs": 3, "code": "BOOM", "message": "it failed"}]',
            greatest(d.attempt_count - 1, 0)
       from dead d join outbox_event e using (event_id) join outbox_subscription s on s.id = d.subscription_id
      where d.status = 'DEAD'
     returning id, position`
}

/** A delivery that was claimed, failed for good and has its dead letter, as settling leaves it. Returns both ids. */
export async function makeDead(
  db: OutboxDatabase,
  options: { readonly eventId: string; readonly held?: boolean; readonly code?: string },
): Promise<{ readonly letterId: string; readonly position: string }> {
  await db.pool.query(
    `update outbox_delivery set status = 'PROCESSING', fresh = false, held = false, next_retry_at = null, attempt_count = attempt_count + 1,
            locked_by = 'w1', locked_until = now() + interval '1 minute', lease_token = nextval('outbox_lease_token')
      where event_id = $1`,
    [options.eventId],
  )
  const { rows } = await db.pool.query<{ id: string; position: string }>(
    withLetters(
      `update outbox_delivery set status = 'DEAD', fresh = false, held = $2, locked_by = null, locked_until = null, lease_token = null,
              last_error_code = $3, last_error_message = 'it failed'
        where event_id = $1`,
    ),
    [options.eventId, options.held ?? false, options.code ?? 'BOOM'],
  )
  const row = rows[0] as { id: string; position: string }
  return { letterId: row.id, position: row.position }
}

/** A complete event as the publisher hands it to the store. */
export function newEvent(overrides: Partial<NewEvent> = {}): NewEvent {
  return {
    eventId: eventIdForLayout(),
    stream: 'shop.order',
    type: 'OrderPlaced',
    schemaVersion: 1,
    aggregateType: 'order',
    aggregateId: '1',
    orderingKey: null,
    sequenced: false,
    payloadJson: '{}',
    headers: {},
    occurredAt: null,
    ...overrides,
  }
}

/** A client of another make: nothing but `query`, and the driver's error one level down. */
export function wrapped(client: pg.PoolClient): Transaction {
  return {
    query: async (text, params) => {
      try {
        return await client.query(text, params as unknown[])
      } catch (cause) {
        throw new Error('query failed', { cause })
      }
    },
  }
}
