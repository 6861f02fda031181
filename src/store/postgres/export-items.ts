import type { ExportItem } from '../export-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

const COLUMNS = 'e.event_id, e.id, octet_length(e.payload::text) + octet_length(e.headers::text)'

// Events have no index by position: a window of positions is found by the BRIN index that finds times too, which a
// page of so many rows would not be.
const itemsSql = (schema: QuotedSchema): string => `
  select ${COLUMNS} from ${schema}.outbox_event e
   where e.stream = $1 and e.id >= $2 and e.id <= $3
   order by e.id, e.event_id`

// Where others have events nearby there is no gap. With the first position of a period there is one, of many millions.
const nextSql = (schema: QuotedSchema): string => `
  select case when exists (select 1 from ${schema}.outbox_event e where e.id > $1 and e.id <= $1::bigint + 100000)
              then $1::bigint + 1
              else (select min(e.id) from ${schema}.outbox_event e where e.id > $1 and e.id <= $2) end`

// The few that are in no export are looked up one by one.
const lateSql = (schema: QuotedSchema): string => `
  select ${COLUMNS} from ${schema}.outbox_amendment a
   cross join lateral (select * from ${schema}.outbox_event e where e.event_id = a.event_id offset 0) e
   where a.export_id is null and e.stream = $1 and e.id < $2
   order by e.id, e.event_id`

/** The events of a stream from one position to another, in order. */
export function exportItems(
  pool: PgPool,
  schema: QuotedSchema,
  stream: string,
  from: string,
  to: string,
): Promise<readonly ExportItem[]> {
  return read(pool, itemsSql(schema), [stream, from, to])
}

/** The first position after this one that any event may have, up to another; null where there is none. */
export async function nextPosition(
  pool: PgPool,
  schema: QuotedSchema,
  after: string,
  upTo: string,
): Promise<string | null> {
  const [row] = await withClient(pool, (client) => rawQuery(client, nextSql(schema), [after, upTo]))
  return row?.[0] ?? null
}

/** Those that took the place of events before the position, and are in no export yet. */
export function lateItems(
  pool: PgPool,
  schema: QuotedSchema,
  stream: string,
  before: string,
): Promise<readonly ExportItem[]> {
  return read(pool, lateSql(schema), [stream, before])
}

async function read(pool: PgPool, sql: string, values: readonly unknown[]): Promise<readonly ExportItem[]> {
  const rows = await withClient(pool, (client) => rawQuery(client, sql, values))
  return rows.map(([eventId, position, bytes]) => ({
    eventId: eventId as string,
    position: position as string,
    bytes: Number(bytes),
  }))
}
