import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { systemIds } from '../../src/runtime/ids.ts'
import { migrateUp } from '../../src/store/postgres/migrate.ts'
import { partitionTables } from '../../src/store/postgres/partition-tables.ts'

/** The layout that this project of the run tests: see vitest.config.ts. */
const isPartitioned = process.env['COMMITPOST_TEST_TABLES'] === 'partitioned'

/** Makes the tables, in the layout that is tested. */
export async function installTables(pool: pg.Pool, schema: string): Promise<void> {
  await migrateUp(pool, { schema })
  if (isPartitioned) await partitionTables(pool, { schema })
}

/** An id of the kind that the layout takes: any UUID, or one that says its time. */
export function eventIdForLayout(): string {
  return isPartitioned ? systemIds.eventId() : randomUUID()
}
