import { createDeadLetters } from '../dead-letter/dead-letters.ts'
import { moveKeyAside } from '../dead-letter/move-aside.ts'
import { createRedrive } from '../dead-letter/redrive.ts'
import { createMasking } from '../event/masking.ts'
import { createProof } from '../inspect/proof.ts'
import { createExports } from '../retain/exports.ts'
import { createRetention } from '../retain/retention.ts'
import { systemClock } from '../runtime/clock.ts'
import { systemIds } from '../runtime/ids.ts'
import { SchemaMissingError, SchemaVersionError } from '../runtime/schema-errors.ts'
import type { MonitorStore } from '../store/alert-store.ts'
import { postgresCare } from '../store/postgres/care.ts'
import { type PgPool } from '../store/postgres/client.ts'
import { quoteSchema } from '../store/postgres/identifiers.ts'
import { migrationStatus } from '../store/postgres/migration-status.ts'
import { openPool } from './postgres-driver.ts'
import type { Database, DatabaseTarget } from './services.ts'

/** One command after the other: more connections would have nothing to do. */
const CONNECTIONS = 2

/** Connects to PostgreSQL through the driver of the user's project. */
export async function openDatabase({ url, schema }: DatabaseTarget): Promise<Database> {
  const { pool } = await openPool({ url, connections: CONNECTIONS })
  const store = postgresCare({ pool, schema })
  const monitor = lazyMonitor(pool, schema)
  const compareMigrations: Database['compareMigrations'] = () => migrationStatus(pool, { schema })
  return {
    deadLetters: createDeadLetters(store),
    deadLettersBy: (known) => createDeadLetters(store, known),
    exportsBy: (known) =>
      createExports({
        openStore: () => store.openExports(),
        masking: known?.masking ?? createMasking(null),
        clock: systemClock,
      }),
    redrive: createRedrive(store, systemClock),
    retention: createRetention({
      store: store.retention,
      retention: null,
      clock: systemClock,
      ids: systemIds,
    }),
    subscriptions: store,
    moveAside: (subscription, key, act) => moveKeyAside(store, systemClock, subscription, key, act),
    figures: {
      readFigures: async (request) => (await monitor.open()).readFigures(request),
      readOpenLetters: async (most) => (await monitor.open()).readOpenLetters(most),
    },
    gauges: store,
    proof: createProof(store, () => null),
    proofBy: (known) => createProof(store, () => null, known?.masking),
    migrateUp: async () => (await import('../store/postgres/migrate.ts')).migrateUp(pool, { schema }),
    partitionTables: async (everyDays) => {
      const { partitionTables } = await import('../store/postgres/partition-tables.ts')
      return partitionTables(pool, { schema, everyDays })
    },
    compareMigrations,
    assertReady: async () => {
      const { state, schemaVersion, codeVersion } = await compareMigrations()
      if (schemaVersion === null) throw new SchemaMissingError(schema)
      if (state !== 'current') throw new SchemaVersionError(schemaVersion, codeVersion)
    },
    [Symbol.asyncDispose]: async () => {
      await monitor.close()
      await pool.end()
    },
  }
}

/** The monitor's connections, which most commands do without. */
function lazyMonitor(pool: PgPool, schema: string) {
  let opened: Promise<MonitorStore> | null = null
  const open = async (): Promise<MonitorStore> => {
    const { openMonitor } = await import('../store/postgres/monitor-store.ts')
    return openMonitor(pool, quoteSchema(schema))
  }
  return {
    open: (): Promise<MonitorStore> => {
      opened ??= open()
      return opened
    },
    close: async (): Promise<void> => (await opened)?.close(),
  }
}
