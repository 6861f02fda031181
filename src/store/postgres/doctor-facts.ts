import type { Clock } from '../../runtime/clock.ts'
import { INSUFFICIENT_PRIVILEGE, sqlState } from '../../runtime/sql-state.ts'
import type { DoctorFacts, DoctorLimits, SchemaFacts, TablesFacts } from '../doctor-facts.ts'
import { type PgClient, type PgPool, rawQuery, withClient } from './client.ts'
import { brokenObjects } from './doctor-broken.ts'
import { seesAllSessions, xminHolders } from './doctor-holders.ts'
import { partitionFacts } from './doctor-partitions.ts'
import { surplusRights, unreadableTables } from './doctor-rights.ts'
import { tableSizes } from './doctor-sizes.ts'
import { subscriptionFacts } from './doctor-subscriptions.ts'
import { storedTypes } from './doctor-types.ts'
import type { QuotedSchema } from './identifiers.ts'
import { type Migration, readMigrations } from './migration-files.ts'
import { readApplied, statusOf } from './migration-status.ts'
import { dateOf, timeColumn } from './time-column.ts'

/** Looks at the server and the tables. Everything is read by indexes, statistics or a bounded number of rows. */
export async function doctorFacts(
  pool: PgPool,
  schema: QuotedSchema,
  clock: Clock,
  limits: DoctorLimits,
): Promise<DoctorFacts> {
  const migrations = await readMigrations()
  return withClient(pool, async (client) => {
    const found = await schemaFacts(client, schema, migrations)
    return {
      schema: found,
      settings: await settings(client),
      clock: await readClock(client, clock),
      seesAllSessions: await seesAllSessions(client),
      holders: await xminHolders(client),
      tables:
        found === null || found.state === 'current'
          ? await tablesFacts(client, schema, migrations, limits)
          : null,
    }
  })
}

async function schemaFacts(
  client: PgClient,
  schema: QuotedSchema,
  migrations: readonly Migration[],
): Promise<SchemaFacts | null> {
  const applied = await readApplied(client, schema).catch((error: unknown) => {
    if (sqlState(error) === INSUFFICIENT_PRIVILEGE) return null
    throw error
  })
  if (applied === null) return null
  const { state, schemaVersion, codeVersion } = statusOf(applied, migrations)
  const checksums = new Map(migrations.map(({ version, checksum }) => [version, checksum]))
  const changed = applied.filter(
    ({ version, checksum }) => checksums.has(version) && checksums.get(version) !== checksum,
  )
  return { state, found: schemaVersion, needed: codeVersion, changed: changed.map(({ name }) => name) }
}

const settingsSql = `
  select current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')`

async function settings(client: PgClient): Promise<DoctorFacts['settings']> {
  const [row] = await rawQuery(client, settingsSql, [])
  const [fsync, fullPageWrites, synchronousCommit] = row as readonly string[]
  return {
    fsync: fsync as string,
    full_page_writes: fullPageWrites as string,
    synchronous_commit: synchronousCommit as string,
  }
}

const clockSql = `select ${timeColumn('clock_timestamp()')}`

async function readClock(client: PgClient, clock: Clock): Promise<DoctorFacts['clock']> {
  const before = clock.now()
  const [row] = await rawQuery(client, clockSql, [])
  return { database: dateOf(row?.[0] as string), before, after: clock.now() }
}

async function tablesFacts(
  client: PgClient,
  schema: QuotedSchema,
  migrations: readonly Migration[],
  limits: DoctorLimits,
): Promise<TablesFacts> {
  const unreadable = await unreadableTables(client, schema)
  // One table that may not be read would be all that is learnt of the others.
  const isReadable = unreadable.length === 0
  return {
    broken: await brokenObjects(client, schema, migrations),
    surplusRights: await surplusRights(client, schema),
    unreadable,
    sizes: await tableSizes(client, schema),
    partitions: isReadable ? await partitionFacts(client, schema) : null,
    subscriptions: isReadable ? await subscriptionFacts(client, schema, limits.leaseSeconds) : [],
    types: isReadable ? await storedTypes(client, schema) : [],
  }
}
