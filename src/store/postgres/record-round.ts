import type { RoundRecord } from '../alert-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// One statement: what was told is written with the end of the turn in which it was told, or not at all. A dead letter
// that somebody has locked is not waited for: it is told of once more.
const recordSql = (schema: QuotedSchema): string => `
  with turn as (
    update ${schema}.outbox_monitor m
       set holder = null, until = '-infinity', looked_at = clock_timestamp(),
           round_at = case when $3::boolean then clock_timestamp() else m.round_at end,
           report_at = case when $4::boolean then clock_timestamp() else m.report_at end,
           rate_position = coalesce($5::bigint, m.rate_position),
           rate_at = case when $5::bigint is null then m.rate_at else $6::timestamptz end
     where m.holder = $1 and m.epoch = $2::bigint
    returning 1
  ),
  alarms as (
    insert into ${schema}.outbox_alarm as o (key, rule, since, told, told_at)
    select a.key, a.rule, a.since, a.told, a.told_at
      from unnest($7::text[], $8::text[], $9::timestamptz[], $10::boolean[], $11::timestamptz[])
           as a(key, rule, since, told, told_at)
     where exists (select from turn)
    on conflict (key) do update
       set rule = excluded.rule, since = excluded.since, told = excluded.told, told_at = excluded.told_at
  ),
  forgotten as (
    delete from ${schema}.outbox_alarm a where a.key = any ($12::text[]) and exists (select from turn)
  ),
  letters as (
    update ${schema}.outbox_dead_letter l
       set told_at = clock_timestamp()
     where exists (select from turn) and l.id = any (array(
       select o.id from ${schema}.outbox_dead_letter o where o.id = any ($13::bigint[]) for update skip locked))
  ),
  workers as (
    delete from ${schema}.outbox_worker w
     where w.worker_id = any ($14::text[]) and w.until < clock_timestamp() and exists (select from turn)
  )
  select exists (select from turn)`

/** Writes what a look came to and gives the turn back. False when the turn was another's by then. */
export async function recordRound(pool: PgPool, schema: QuotedSchema, record: RoundRecord): Promise<boolean> {
  const { turn, alarms } = record
  const iso = (at: Date | null): string | null => at?.toISOString() ?? null
  const values = [
    turn.holder,
    turn.epoch,
    turn.whole,
    record.reported,
    record.position,
    iso(turn.now),
    alarms.map(({ key }) => key),
    alarms.map(({ rule }) => rule),
    alarms.map(({ since }) => iso(since)),
    alarms.map(({ told }) => told),
    alarms.map(({ toldAt }) => iso(toldAt)),
    record.forgotten,
    record.toldLetters,
    record.toldWorkers,
  ]
  const [row] = await withClient(pool, (client) => rawQuery(client, recordSql(schema), values))
  return row?.[0] === 't'
}
