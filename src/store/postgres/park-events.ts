import type { ParkedEvent, StreamLease } from '../stream-store.ts'
import { type PgClient, rawQuery } from './client.ts'
import { insertDeadLetters } from './dead-letter-sql.ts'
import type { QuotedSchema } from './identifiers.ts'

// Held, never fresh: so that whoever asks for the open keys finds them by their key. now(), not clock_timestamp(): events
// of a key that are set aside together are due at one instant, see claim-lanes.ts. What is there already, because an
// earlier reader was here, stays as it is.
const parkSql = (schema: QuotedSchema): string => `
  with own as (
    update ${schema}.outbox_stream t
       set parked_to = greatest(t.parked_to, $4::bigint), updated_at = clock_timestamp()
     where t.subscription_id = $1 and t.epoch = $2
    returning t.owner
  ),
  input as materialized (
    select * from jsonb_to_recordset($3::text::jsonb) as i(
      id bigint, event_id uuid, key text, kind text, delay_ms float8, duration_ms float8, code text, message text)
  ),
  changed as (
    insert into ${schema}.outbox_delivery (subscription_id, lane, id, event_id, ordering_key, max_attempts, status, fresh,
           held, attempt_count, next_retry_at, last_attempt_at, last_error_code, last_error_message, attempt_history)
    select s.id, case when s.lanes = 0 then 0::smallint else ${schema}.outbox_lane_of(i.key, s.lanes) end,
           i.id, i.event_id, i.key, s.max_attempts, case i.kind when 'dead' then 'DEAD' else 'PENDING' end, false,
           case i.kind when 'dead' then i.key is not null and s.on_dead = 'block' else true end,
           case when i.code is null then 0 else 1 end,
           case i.kind when 'dead' then null else now() + i.delay_ms * interval '1 millisecond' end,
           case when i.code is not null then clock_timestamp() end, i.code, i.message,
           case when i.code is not null then jsonb_build_array(jsonb_build_object('attempt', 1, 'at', clock_timestamp(),
             'worker', o.owner, 'durationMs', i.duration_ms, 'code', i.code, 'message', i.message)) end
      from own o cross join input i join ${schema}.outbox_subscription s on s.id = $1
        on conflict do nothing
    returning *
  ),
  letters as (${insertDeadLetters(schema)}
  )
  select count(*) from own`

/** Sets events of the log aside as deliveries. False, with nothing written, where the lease is another's. */
export async function parkEvents(
  client: PgClient,
  schema: QuotedSchema,
  { subscriptionId, epoch }: StreamLease,
  events: readonly ParkedEvent[],
): Promise<boolean> {
  const last = events.reduce((most, { position }) => {
    const one = BigInt(position)
    return one > most ? one : most
  }, 0n)
  const [row] = await rawQuery(client, parkSql(schema), [
    subscriptionId,
    epoch,
    JSON.stringify(events.map(toInput)),
    String(last),
  ])
  return row?.[0] === '1'
}

function toInput(event: ParkedEvent): Record<string, unknown> {
  return {
    id: event.position,
    event_id: event.eventId,
    key: event.orderingKey,
    kind: event.kind,
    delay_ms: event.delayMs,
    duration_ms: Math.round(event.durationMs * 10) / 10,
    code: event.failure?.code ?? null,
    message: event.failure?.message ?? null,
  }
}
