import type pg from 'pg'
import { migrateUp } from '../../src/store/postgres/migrate.ts'
import { partitionTables } from '../../src/store/postgres/partition-tables.ts'

/** The layout that this project of the run tests: see vitest.config.ts. */
const isPartitioned = process.env['COMMITPOST_TEST_TABLES'] === 'partitioned'

/** Makes the tables, in the layout that is tested. */
export async function installTables(pool: pg.Pool, schema: string): Promise<void> {
  await migrateUp(pool, { schema })
  if (isPartitioned) await partitionTables(pool, { schema })
}
