import type { Settled } from '../../delivery/delivery.ts'
import type { NewDeadLetter } from '../queue-store.ts'
import { type PgClient, type RawRow, rawQuery } from './client.ts'
import { appendHistory, insertDeadLetters } from './dead-letter-sql.ts'
import type { QuotedSchema } from './identifiers.ts'

// Everything that is not DONE: another attempt later, dead, given back, or parked behind an earlier event of its key.
// Walks outbox_delivery_leased by the tokens; the token in the statement is the guard.
// now(), not clock_timestamp(): events of a key that are given back together are due at one instant, see claim-lanes.ts.
const settleFailedSql = (schema: QuotedSchema): string => `
  with input as materialized (
    select * from jsonb_to_recordset($2::text::jsonb) as i(
      id bigint, token bigint, kind text, delay_ms float8, duration_ms float8, code text, message text)
  ),
  changed as (
    update ${schema}.outbox_delivery d
       set status = case i.kind when 'dead' then 'DEAD' else 'PENDING' end,
           held = case i.kind when 'dead' then d.ordering_key is not null and s.on_dead = 'block' else true end,
           next_retry_at = case i.kind when 'dead' then null when 'park' then 'infinity'::timestamptz
                           else now() + i.delay_ms * interval '1 millisecond' end,
           attempt_count = d.attempt_count - case when i.kind in ('release', 'park') then 1 else 0 end,
           suspect = d.suspect and i.kind in ('release', 'park'),
           last_error_code = coalesce(i.code, d.last_error_code),
           last_error_message = coalesce(i.message, d.last_error_message),
           attempt_history = case when i.code is null then d.attempt_history else ${appendHistory(`
             jsonb_build_object('attempt', d.attempt_count, 'at', d.last_attempt_at, 'worker', d.locked_by,
               'durationMs', i.duration_ms, 'code', i.code, 'message', i.message)`)} end,
           locked_by = null, locked_until = null, lease_token = null, updated_at = clock_timestamp()
      from input i, ${schema}.outbox_subscription s
     where s.id = $1 and d.subscription_id = $1 and d.status = 'PROCESSING'
       and d.lease_token = any (array(select distinct token from input))
       and d.lease_token = i.token and d.id = i.id
    returning d.*
  ),
  letters as (${insertDeadLetters(schema)}
  )
  select c.id, c.lane, l.id, c.event_id, c.last_error_code
    from changed c left join letters l on l.subscription_id = c.subscription_id and l.position = c.id`

/** What was written: which positions were still leased, and the dead letters that came of it. */
export interface FailedReport {
  readonly settled: ReadonlySet<string>
  readonly dead: readonly NewDeadLetter[]
}

/** Writes down attempts of one subscription that did not end DONE. */
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
  return {
    settled: new Set(rows.map((row) => row[0] as string)),
    dead: rows.filter((row) => row[2] !== null).map((row) => toDeadLetter(row, subscriptionId)),
  }
}

function toInput({ delivery, settlement, durationMs }: Settled): Record<string, unknown> {
  const failure = 'failure' in settlement ? settlement.failure : null
  return {
    id: delivery.position,
    token: delivery.lease.token,
    kind: settlement.kind,
    delay_ms: 'delayMs' in settlement ? settlement.delayMs : 0,
    duration_ms: Math.round(durationMs * 10) / 10,
    code: failure?.code ?? null,
    message: failure?.message ?? null,
  }
}

function toDeadLetter(row: RawRow, subscriptionId: number): NewDeadLetter {
  return {
    deadLetterId: row[2] as string,
    delivery: { subscriptionId, lane: Number(row[1]), position: row[0] as string },
    eventId: row[3] as string,
    errorCode: row[4] as string,
  }
}
