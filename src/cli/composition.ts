import { readFile } from 'node:fs/promises'
import { createDeadLetters } from '../dead-letter/dead-letters.ts'
import { moveKeyAside } from '../dead-letter/move-aside.ts'
import { createRedrive } from '../dead-letter/redrive.ts'
import { createMasking } from '../event/masking.ts'
import { createProof } from '../inspect/proof.ts'
import { createExports } from '../retain/exports.ts'
import { createRetention } from '../retain/retention.ts'
import { systemClock } from '../runtime/clock.ts'
import { SchemaMissingError, SchemaVersionError } from '../runtime/errors.ts'
import { systemIds } from '../runtime/ids.ts'
import { migrateUp } from '../store/postgres/migrate.ts'
import { migrationSql } from '../store/postgres/migration-sql.ts'
import { migrationStatus } from '../store/postgres/migration-status.ts'
import { partitionSql } from '../store/postgres/partition-steps.ts'
import { partitionTables } from '../store/postgres/partition-tables.ts'
import { postgresStore } from '../store/postgres/postgres-store.ts'
import { rolesSql } from '../store/postgres/roles.ts'
import { openDemoDatabase } from './demo/composition.ts'
import { openPool } from './postgres-driver.ts'
import type { Database, DatabaseTarget, Services } from './services.ts'

/** The services of the real program: PostgreSQL, through the driver of the user's project. */
export function createServices(): Services {
  return { openDatabase, migrationSql, partitionSql, rolesSql, openDemoDatabase, packageVersion }
}

/** One command after the other: more connections would have nothing to do. */
const CONNECTIONS = 2

async function openDatabase({ url, schema }: DatabaseTarget): Promise<Database> {
  const { pool } = await openPool({ url, connections: CONNECTIONS })
  const store = postgresStore({ pool, schema })
  const figures = store.openMonitor()
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
    figures,
    gauges: store,
    proof: createProof(store, () => null),
    proofBy: (known) => createProof(store, () => null, known?.masking),
    migrateUp: () => migrateUp(pool, { schema }),
    partitionTables: (everyDays) => partitionTables(pool, { schema, everyDays }),
    compareMigrations,
    assertReady: async () => {
      const { state, schemaVersion, codeVersion } = await compareMigrations()
      if (schemaVersion === null) throw new SchemaMissingError(schema)
      if (state !== 'current') throw new SchemaVersionError(schemaVersion, codeVersion)
    },
    [Symbol.asyncDispose]: async () => {
      await figures.close()
      await pool.end()
    },
  }
}

/** The nearest package.json above this file that is our own, wherever the file was compiled to. */
async function packageVersion(): Promise<string> {
  for (let directory = new URL('.', import.meta.url); ; directory = new URL('..', directory)) {
    const manifest = await readManifest(new URL('package.json', directory))
    if (manifest?.name === 'commitpost') return manifest.version
    if (directory.pathname === new URL('..', directory).pathname) return '0.0.0'
  }
}

interface Manifest {
  readonly name: string
  readonly version: string
}

async function readManifest(file: URL): Promise<Manifest | null> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Manifest
  } catch {
    return null // not here, perhaps further up
  }
}
