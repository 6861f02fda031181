import type { Settled } from '../../delivery/delivery.ts'
import type { NewDeadLetter } from '../queue-store.ts'
import { type PgClient, type RawRow, rawQuery } from './client.ts'
import { appendHistory, insertDeadLetters } from './dead-letter-sql.ts'
import { HELD_NOW } from './held-since.ts'
import type { QuotedSchema } from './identifiers.ts'
import { tryLock } from './lane-sql.ts'

// Everything that is not simply DONE: another attempt later, dead, given back, parked behind an earlier event of its key,
// and whatever its handler completed in its own transaction. By primary key; the token in the statement is the guard.
// A row that is still leased but locked (its handler's transaction has not ended, a heartbeat is at it, a person looks
// at it) is not waited for: one must not hold up the others.
// now(), not clock_timestamp(): events of a key that are given back together are due at one instant, see claim-lanes.ts.
const settleFailedSql = (schema: QuotedSchema): string => `
  with input as materialized (
    select * from jsonb_to_recordset($2::text::jsonb) as i(
      id bigint, lane smallint, token bigint, kind text, delay_ms float8, duration_ms float8, code text, message text,
      completed boolean, suspect boolean)
  ),
  leased as materialized (
    select d.version, i.*
      from input i
     cross join lateral (
       select d.xmin as version from ${schema}.outbox_delivery d
        where d.id = i.id and d.subscription_id = $1 and d.lease_token = i.token
       offset 0) d
  ),
  tried as materialized (${tryLock(schema, 'leased', '$1')}),
  changed as (
    update ${schema}.outbox_delivery d
       set status = case i.kind when 'dead' then 'DEAD' else 'PENDING' end,
           held = case i.kind when 'dead' then d.ordering_key is not null and s.on_dead = 'block' else true end,
           held_since = case i.kind when 'dead' then null else ${HELD_NOW} end,
           next_retry_at = case i.kind when 'dead' then null when 'park' then 'infinity'::timestamptz
                           else now() + i.delay_ms * interval '1 millisecond' end,
           attempt_count = d.attempt_count - case when i.kind in ('release', 'park') then 1 else 0 end,
           suspect = i.suspect and i.kind in ('release', 'park'),
           last_error_code = coalesce(i.code, d.last_error_code),
           last_error_message = coalesce(i.message, d.last_error_message),
           attempt_history = case when i.code is null then d.attempt_history else ${appendHistory(`
             jsonb_build_object('attempt', d.attempt_count, 'at', d.last_attempt_at, 'worker', d.locked_by,
               'durationMs', i.duration_ms, 'code', i.code, 'message', i.message)`)} end,
           locked_by = null, locked_until = null, lease_token = null, updated_at = clock_timestamp()
      from tried i, ${schema}.outbox_subscription s
     where s.id = $1 and d.id = any (array(select id from tried where got)) and d.subscription_id = $1
       and d.lease_token = i.token and d.id = i.id
    returning d.*
  ),
  letters as (${insertDeadLetters(schema)}
  )
  select 'settled', c.id, c.lane, l.id, c.event_id, c.last_error_code
    from changed c left join letters l on l.subscription_id = c.subscription_id and l.position = c.id
  union all
  select 'busy', t.id, t.lane, null, null, null from tried t where not t.got
  union all
  select 'committed', i.id, i.lane, null, null, null from input i
   where i.completed
     and (select d.status from ${schema}.outbox_delivery d
           where d.subscription_id = $1 and d.lane = i.lane and d.id = i.id) = 'DONE'`

/** What was written, by position: what was still leased, what is locked, what is DONE, and the new dead letters. */
export interface FailedReport {
  readonly settled: ReadonlySet<string>
  readonly busy: ReadonlySet<string>
  readonly committed: ReadonlySet<string>
  readonly dead: readonly NewDeadLetter[]
}

/** Writes down attempts of one subscription that did not end DONE, or that completed their delivery themselves. */
export async function settleFailed(
  client: PgClient,
  schema: QuotedSchema,
  subscriptionId: number,
  batch: readonly Settled[],
): Promise<FailedReport> {
  const rows = await rawQuery(client, settleFailedSql(schema), [
    subscriptionId,
    JSON.stringify(batch.map(toInput)),
  ])
  const positions = (which: string): ReadonlySet<string> =>
    new Set(rows.filter(([what]) => what === which).map((row) => row[1] as string))
  return {
    settled: positions('settled'),
    busy: positions('busy'),
    committed: positions('committed'),
    dead: rows.filter((row) => row[3] !== null).map((row) => toDeadLetter(row, subscriptionId)),
  }
}

function toInput({ delivery, settlement, durationMs, completed = false }: Settled): Record<string, unknown> {
  const failure = 'failure' in settlement ? settlement.failure : null
  return {
    id: delivery.position,
    lane: delivery.lane,
    token: delivery.lease.token,
    kind: settlement.kind,
    delay_ms: 'delayMs' in settlement ? settlement.delayMs : 0,
    duration_ms: Math.round(durationMs * 10) / 10,
    code: failure?.code ?? null,
    message: failure?.message ?? null,
    completed,
    suspect: delivery.suspect,
  }
}

function toDeadLetter(row: RawRow, subscriptionId: number): NewDeadLetter {
  return {
    deadLetterId: row[3] as string,
    delivery: { subscriptionId, lane: Number(row[2]), position: row[1] as string },
    eventId: row[4] as string,
    errorCode: row[5] as string,
  }
}
