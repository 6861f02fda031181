import pg from 'pg'
import { type Clock, systemClock } from '../../src/runtime/clock.ts'
import { quoteSchema } from '../../src/store/postgres/identifiers.ts'
import { PostgresWorkerStore } from '../../src/store/postgres/worker-store.ts'
import type { WorkerStore } from '../../src/store/store.ts'
import { createOutboxDatabase, type OutboxDatabase, one } from '../store/postgres/fixtures.ts'
import { createTestDatabase, onceUnused } from '../support/database.ts'
import { installTables } from '../support/install-tables.ts'
import { lapseLeases } from '../support/leases.ts'
import { startOwnPostgres } from '../support/own-postgres.ts'
import { eventually } from '../support/program.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { SteppingPool } from './stepping-pool.ts'

/** A worker whose statements can be watched and held. */
export interface SteppedWorker {
  readonly store: WorkerStore
  readonly pool: SteppingPool
}

/** A migrated schema with connections that have names, so that a test can see which of them waits for a lock. */
export interface Hazard extends AsyncDisposable {
  readonly db: OutboxDatabase
  /** A connection of its own. */
  connect(name: string): Promise<pg.Client>
  /** A worker's store on connections of its own. */
  worker(name: string, clock?: Clock): SteppedWorker
  /** Resolves as soon as a connection of that name waits for a lock. */
  untilBlocked(name: string): Promise<void>
}

/** Sets a schema up; `await using` takes it down with everything that was opened. */
export async function hazard(create: () => Promise<OutboxDatabase> = createOutboxDatabase): Promise<Hazard> {
  const db = await create()
  const open: (() => Promise<void>)[] = []
  const options = (name: string): pg.PoolConfig => ({
    connectionString: db.url,
    application_name: `${db.schema} ${name}`,
  })
  return {
    db,
    async connect(name) {
      const client = new pg.Client(options(name))
      client.on('error', () => undefined)
      await client.connect()
      open.push(() => client.end())
      return client
    },
    worker(name, clock = systemClock) {
      const pool = new SteppingPool(sturdyPool(options(name)))
      open.push(() => pool.end())
      return {
        pool,
        store: new PostgresWorkerStore({ pool, own: false }, quoteSchema(db.schema), clock),
      }
    },
    untilBlocked: (name) =>
      eventually(`${name} waits for a lock`, () =>
        one<boolean>(
          db.pool,
          `select exists (select 1 from pg_stat_activity
                           where application_name = $1 and wait_event_type = 'Lock')`,
          [`${db.schema} ${name}`],
        ),
      ),
    async [Symbol.asyncDispose]() {
      // The last first: a connection that holds a lock must go before a pool that waits for one of its own.
      for (const close of open.toReversed()) await close()
      await db.drop()
    },
  }
}

/**
 * A database of its own on the shared server. Schemas that other tests create and drop make every connection of their
 * database plan anew.
 */
export async function createOwnDatabase(): Promise<OutboxDatabase> {
  const shared = await createTestDatabase()
  const { schema } = shared
  await onceUnused(() => shared.pool.query(`create database ${schema}`))
  const url = new URL(shared.url)
  url.pathname = `/${schema}`
  const pool = new pg.Pool({ connectionString: url.href })
  pool.on('error', () => undefined)
  await installTables(pool, schema)
  const drop = async (): Promise<void> => {
    await pool.end()
    await onceUnused(() => shared.pool.query(`drop database ${schema} with (force)`))
    await shared.drop()
  }
  return { schema, url: url.href, pool, drop, quoted: quoteSchema(schema), [Symbol.asyncDispose]: drop }
}

/** A server of its own, for what must not be disturbed by any other test: whatever changes a catalogue is told to all. */
export async function createOwnServer(): Promise<OutboxDatabase> {
  const server = await startOwnPostgres()
  const schema = 'own'
  const url = new URL(server.url)
  url.searchParams.set('options', `-c search_path=${schema}`)
  const pool = new pg.Pool({ connectionString: url.href })
  pool.on('error', () => undefined)
  await installTables(pool, schema)
  const drop = async (): Promise<void> => {
    await pool.end()
    await server.stop('immediate')
  }
  return { schema, url: url.href, pool, drop, quoted: quoteSchema(schema), [Symbol.asyncDispose]: drop }
}

/** Publishes events in the given order by one plain INSERT, one aggregate id each. */
export async function publish(
  client: Pick<pg.Pool | pg.Client | pg.PoolClient, 'query'>,
  aggregateIds: readonly string[],
  { type = 'ThingHappened', stream = 'things' }: { readonly type?: string; readonly stream?: string } = {},
): Promise<void> {
  await client.query(
    `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
     select $2, $3, 'thing', a.id, '{}' from unnest($1::text[]) with ordinality as a(id, n) order by a.n`,
    [aggregateIds, stream, type],
  )
}

/**
 * Publishes many events of few keys, `key` being an SQL expression of `n`. In short transactions: what registers on
 * this server, in whichever test, waits for all that are open.
 */
export async function publishMany({ db }: Hazard, count: number, key: string): Promise<void> {
  const step = 1_000
  for (let from = 1; from <= count; from += step) {
    await db.pool.query(
      `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
       select 'things', 'ThingHappened', 'thing', (${key})::text, '{}'
         from generate_series(${from}, ${Math.min(count, from + step - 1)}) as n`,
    )
  }
}

/** Whatever happens to the table from now on, the planner learns nothing of it, unless a test analyzes it. */
export async function withoutAutovacuum({ db }: Hazard, table: string): Promise<void> {
  const { rows } = await db.pool.query<{ part: string }>(
    `select c.oid::regclass::text as part from pg_class c
      where c.relkind = 'r'
        and (c.oid = $1::regclass or c.oid in (select t.relid from pg_partition_tree($1::regclass) t))`,
    [table],
  )
  for (const { part } of rows) await db.pool.query(`alter table ${part} set (autovacuum_enabled = false)`)
}

/** The leases of a worker end now, as if its time had passed on the database's clock. */
export async function lapse(db: OutboxDatabase, workerId: string): Promise<void> {
  await lapseLeases(db.pool, workerId)
}

/** Puts a changed function in the place of one of the schema's own; fails when there is nothing to change. */
export async function replaceFunction(
  { db }: Hazard,
  name: string,
  change: (definition: string) => string,
): Promise<void> {
  const definition = await one<string>(db.pool, 'select pg_get_functiondef($1::regproc)', [
    `${db.schema}.${name}`,
  ])
  const changed = change(definition)
  if (changed === definition) throw new Error(`${name} does not contain what this test takes out of it`)
  await db.pool.query(changed)
}

/** Publishers with a snapshot older than a registration are let through. */
export function withoutRegistrationGuard(h: Hazard): Promise<void> {
  return replaceFunction(h, 'outbox_fan_out', (definition) =>
    definition.replace(/if current_setting\('transaction_isolation'\)[^;]*? then/, 'if false then'),
  )
}

/** Sends a worker of lanes the long way at once: its claim finds something held, without a look at the lanes. */
export function asIfHeld(text: string): string {
  if (!text.includes('for update nowait')) return text
  return text.replace(' or exists (', ' or true or exists (').replace(/for update\) l\b/, ') l')
}
