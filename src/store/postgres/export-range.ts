import type { ExportBarrier, ExportBound, ExportRange } from '../export-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// As the low-water bound: whoever has a position has a transaction id already, so every position up to this one belongs
// to a transaction older than the id that is taken here, after the position is read.
const proposeSql = (schema: QuotedSchema): string => `
  select q.last_value - (not q.is_called)::int, pg_current_xact_id() from ${schema}.outbox_event_id_seq q`

/** A position, and the transaction after whose end, and that of all before, nothing can appear up to it any more. */
export async function proposeBarrier(pool: PgPool, schema: QuotedSchema): Promise<ExportBarrier> {
  const [row] = await withClient(pool, (client) => rawQuery(client, proposeSql(schema), []))
  return { position: row?.[0] as string, xid: row?.[1] as string }
}

const decidedSql = 'select pg_snapshot_xmin(pg_current_snapshot()) > $1::text::xid8'

/** Whether every transaction up to that of the barrier has ended. */
export async function isDecided(pool: PgPool, { xid }: ExportBarrier): Promise<boolean> {
  const [row] = await withClient(pool, (client) => rawQuery(client, decidedSql, [xid]))
  return row?.[0] === 't'
}

// The range ends before the first event that is too young, of any stream: positions and times are in nearly the same
// order, and what is left out now comes with the next export. An event that took the place of another is young at an
// old position, and ends nothing.
const rangeSql = (schema: QuotedSchema): string => `
  with bound as (
    select coalesce($4::text::timestamptz, clock_timestamp() - $5::float8 * interval '1 millisecond') as time),
  range as materialized (
    select least($3::bigint, (
      select min(e.id) - 1 from ${schema}.outbox_event e
       where e.created_at >= (select time from bound) and e.id >= $2 and e.id <= $3
         and not exists (select 1 from ${schema}.outbox_amendment a where a.event_id = e.event_id))) as last)
  select (select last from range), count(*), min(e.id), max(e.id)
    from ${schema}.outbox_event e
   where e.stream = $1 and e.id >= $2 and e.id <= (select last from range)`

/** What there is of a stream from a position on, up to the bound and no further than a decided position. */
export async function exportRange(
  pool: PgPool,
  schema: QuotedSchema,
  stream: string,
  firstPosition: string,
  decided: string,
  bound: ExportBound,
): Promise<ExportRange> {
  const until = bound.kind === 'until' ? bound.time.toISOString() : null
  const ageMs = bound.kind === 'older-than' ? bound.ageMs : null
  const values = [stream, firstPosition, decided, until, ageMs]
  const [row] = await withClient(pool, (client) => rawQuery(client, rangeSql(schema), values))
  return {
    lastPosition: row?.[0] as string,
    events: Number(row?.[1]),
    lowest: row?.[2] ?? null,
    highest: row?.[3] ?? null,
  }
}

const knownSql = (schema: QuotedSchema): string => `
  select exists (select 1 from ${schema}.outbox_export x where x.stream = $1)
      or exists (select 1 from ${schema}.outbox_event e where e.stream = $1)`

/** Whether there is any event, or was any export, of a stream. */
export async function isKnownStream(pool: PgPool, schema: QuotedSchema, stream: string): Promise<boolean> {
  const [row] = await withClient(pool, (client) => rawQuery(client, knownSql(schema), [stream]))
  return row?.[0] === 't'
}
