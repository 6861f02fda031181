import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { systemIds } from '../../src/runtime/ids.ts'
import { migrateUp } from '../../src/store/postgres/migrate.ts'
import { partitionTables } from '../../src/store/postgres/partition-tables.ts'

/** The layout that this project of the run tests: see vitest.config.ts. */
export const isPartitioned = process.env['COMMITPOST_TEST_TABLES'] === 'partitioned'

/** Makes the tables, in the layout that is tested. */
export async function installTables(pool: pg.Pool, schema: string): Promise<void> {
  await migrateUp(pool, { schema })
  if (isPartitioned) await partitionTables(pool, { schema })
}

// No event is archived whose id says that it is younger than a day and an hour.
const OLD_MS = 26 * 3_600_000

/** An id of the kind that the layout takes: any UUID, or one that says its time, and is old enough for an archive. */
export function eventIdForLayout(): string {
  return isPartitioned ? uuidV7At(Date.now() - OLD_MS) : randomUUID()
}

/** A UUID of version 7 that says it was made then. */
export function uuidV7At(ms: number): string {
  const hex = ms.toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}${systemIds.eventId().slice(13)}`
}
