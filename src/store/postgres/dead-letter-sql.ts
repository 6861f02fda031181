import type { QuotedSchema } from './identifiers.ts'

/**
 * Copies every DEAD row of the CTE `changed` into the dead letters: written in the statement that made it DEAD, so
 * that there is never one without the other. Retry count is attempts after the first.
 */
export const insertDeadLetters = (schema: QuotedSchema): string => `
    insert into ${schema}.outbox_dead_letter (subscription, subscription_id, lane, position, event_id, stream,
           event_type, schema_version, aggregate_type, aggregate_id, ordering_key, payload, headers, occurred_at,
           error_code, error_message, attempt_history, retry_count)
    select s.name, c.subscription_id, c.lane, c.id, e.event_id, e.stream,
           e.event_type, e.schema_version, e.aggregate_type, e.aggregate_id, c.ordering_key, e.payload, e.headers,
           e.occurred_at, c.last_error_code, coalesce(c.last_error_message, ''), coalesce(c.attempt_history, '[]'),
           greatest(c.attempt_count - 1, 0)
      from changed c
      join ${schema}.outbox_subscription s on s.id = c.subscription_id
     cross join lateral (select * from ${schema}.outbox_event e where e.event_id = c.event_id offset 0) e
     where c.status = 'DEAD'
    returning id, subscription_id, lane, position, event_id, error_code`

/** The last entries of a history are what a person reads; a delivery that fails for months must not grow for ever. */
const HISTORY_LIMIT = 50

/** Appends one entry to `d.attempt_history` and keeps the newest. `entry` is an SQL expression of type jsonb. */
export const appendHistory = (entry: string): string => `
    (select jsonb_agg(h.entry order by h.n)
       from (select entry, n, count(*) over () as total
               from jsonb_array_elements(coalesce(d.attempt_history, '[]') || jsonb_build_array(${entry}))
                    with ordinality as x(entry, n)) h
      where h.n > h.total - ${HISTORY_LIMIT})`
