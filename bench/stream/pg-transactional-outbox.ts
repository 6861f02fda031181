// pg-transactional-outbox: its logical replication listener, from its own table in the same server to a no-op.
import type pg from 'pg'
import { assertCount, countOf } from '../support/drain-program.ts'
import { PAYLOAD_SQL } from '../support/payload.ts'
import type { ListenerReport, ListenerTask } from '../support/protocol.ts'
import { runToReport } from '../support/start-program.ts'
import type { Stage } from './stage.ts'

const SCHEMA = 'transactional_outbox_bench'
const TABLE = 'outbox'
/** Where its table is, and what replicates it. */
export const PLACE = { schema: SCHEMA, table: TABLE, publication: `${SCHEMA}_pub`, slot: `${SCHEMA}_slot` }
// Enough for it to be warm. With full concurrency it sorts all open messages for each of them: more would make it slower.
const MOST_EVENTS = 10_000
const MOST_SECONDS = 20
/** Of its handlers. */
export const CONNECTIONS = 20

/** One way to let it work. */
export interface TransactionalOutboxWay {
  readonly name: string
  readonly concurrency: ListenerTask['concurrency']
}

/** Its concurrency controllers for messages that have no order among them, and its default. */
export const TRANSACTIONAL_OUTBOX_WAYS: readonly TransactionalOutboxWay[] = [
  { name: 'pg-transactional-outbox, full concurrency', concurrency: 'full' },
  { name: `pg-transactional-outbox, semaphore of ${CONNECTIONS}`, concurrency: 'semaphore' },
  { name: 'pg-transactional-outbox, mutex', concurrency: 'mutex' },
]

/**
 * Writes a backlog, lets the listener read it and returns its figures.
 * @throws Error when a message that was handled is not marked as processed.
 */
export async function measureTransactionalOutbox(
  { database, events, keys }: Stage,
  { concurrency }: TransactionalOutboxWay,
): Promise<Readonly<Record<string, number>>> {
  const count = Math.min(events, MOST_EVENTS)
  await prepare(database.pool)
  await load(database.pool, count, keys)
  const task: ListenerTask = {
    ...PLACE,
    url: database.url,
    concurrency,
    connections: CONNECTIONS,
    events: count,
    mostSeconds: MOST_SECONDS,
  }
  const postgresBefore = database.cpuMicros() ?? 0
  const { timed, seconds, handled, cpuMicros } = await runToReport<ListenerReport>(
    'pg-transactional-outbox',
    task,
  )
  const postgres = (database.cpuMicros() ?? 0) - postgresBefore
  await verify(database.pool, handled)
  await drop(database.pool)
  return { perSecond: timed / seconds, nodeMicros: cpuMicros / handled, postgresMicros: postgres / handled }
}

/** What its own generator of set-up scripts writes for an outbox that is replicated, but for the roles. */
export async function prepare(pool: pg.Pool): Promise<void> {
  await drop(pool)
  await pool.query(`
    create schema ${SCHEMA};
    create table ${SCHEMA}.${TABLE} (
      id uuid primary key,
      aggregate_type text not null,
      aggregate_id text not null,
      message_type text not null,
      segment text,
      concurrency text not null default 'sequential',
      payload jsonb not null,
      metadata jsonb,
      locked_until timestamptz not null default to_timestamp(0),
      created_at timestamptz not null default clock_timestamp(),
      processed_at timestamptz,
      abandoned_at timestamptz,
      started_attempts smallint not null default 0,
      finished_attempts smallint not null default 0
    );
    alter table ${SCHEMA}.${TABLE} add constraint outbox_concurrency_check
      check (concurrency in ('sequential', 'parallel'));
    create publication ${PLACE.publication} for table ${SCHEMA}.${TABLE} with (publish = 'insert')`)
  await pool.query(`select pg_create_logical_replication_slot('${PLACE.slot}', 'pgoutput')`)
}

/** Before it listens, so that none is lost to it: it passes over a message whose row it cannot see yet. */
export async function load(pool: pg.Pool, events: number, keys: number): Promise<void> {
  await pool.query(
    `insert into ${SCHEMA}.${TABLE} (id, aggregate_type, aggregate_id, message_type, segment, payload)
     select gen_random_uuid(), 'order', (i % $2)::text, 'OrderPlaced', (i % $2)::text, ${PAYLOAD_SQL}
       from generate_series(1, $1::int) i`,
    [events, keys],
  )
}

async function verify(pool: pg.Pool, handled: number): Promise<void> {
  if (handled === 0) throw new Error(`pg-transactional-outbox handled nothing in ${MOST_SECONDS} seconds`)
  const sql = `select count(*) from ${SCHEMA}.${TABLE} where processed_at is not null`
  assertCount('messages that are marked as processed', await countOf(pool, sql), handled)
}

/** Its table and publication; its slot goes with those of the others. */
export async function drop(pool: pg.Pool): Promise<void> {
  await pool.query(`drop publication if exists ${PLACE.publication}`)
  await pool.query(`drop schema if exists ${SCHEMA} cascade`)
}
