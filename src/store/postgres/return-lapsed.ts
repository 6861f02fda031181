import type { CrashedDelivery } from '../queue-store.ts'
import { type PgClient, type RawRow, rawQuery } from './client.ts'
import { appendHistory, insertDeadLetters } from './dead-letter-sql.ts'
import { EVENT_COLUMNS, toEvent } from './event-row.ts'
import type { QuotedSchema } from './identifiers.ts'

/** The error code of a delivery whose workers died while they ran it alone. */
const CRASHED = 'CRASHED'

// What a worker that vanished had in hand. A delivery that ran among others becomes a suspect and gets its attempt
// back: any of them may have killed the process. So does one of a group of suspects, which claim-suspects.ts does not
// mark while they are in hand. A row in hand that is marked ran alone, so the crash is its own: the attempt stays spent,
// the next one waits (2, 4, 8 … s, at most a minute), and the last makes it DEAD.
const returnLapsedSql = (schema: QuotedSchema, which: string): string => `
  with lapsed as materialized (
    select array(
      select d.ctid from ${schema}.outbox_delivery d
       where d.subscription_id = any ($1::int[]) and d.status = 'PROCESSING' and ${which}
       limit 5000
         for update skip locked) as rows
  ),
  changed as (
    update ${schema}.outbox_delivery d
       set status = case when d.suspect and d.attempt_count >= d.max_attempts then 'DEAD' else 'PENDING' end,
           held = case when d.suspect and d.attempt_count >= d.max_attempts
                       then d.ordering_key is not null
                        and (select s.on_dead = 'block' from ${schema}.outbox_subscription s
                              where s.id = d.subscription_id)
                       else true end,
           suspect = not (d.suspect and d.attempt_count >= d.max_attempts),
           attempt_count = d.attempt_count - case when d.suspect then 0 else 1 end,
           next_retry_at = case when not d.suspect then now()
                                when d.attempt_count >= d.max_attempts then null
                                else now() + least(60, 2 ^ least(d.attempt_count, 6)) * interval '1 second' end,
           last_error_code = case when d.suspect then '${CRASHED}' else d.last_error_code end,
           last_error_message = case when d.suspect then 'worker ' || d.locked_by || ' vanished while it ran this'
             || ' event alone' else d.last_error_message end,
           attempt_history = case when not d.suspect then d.attempt_history else ${appendHistory(`
             jsonb_build_object('attempt', d.attempt_count, 'at', d.last_attempt_at, 'worker', d.locked_by,
               'durationMs', extract(epoch from clock_timestamp() - d.last_attempt_at) * 1000,
               'code', '${CRASHED}', 'message', 'the worker vanished')`)} end,
           locked_by = null, locked_until = null, lease_token = null, updated_at = clock_timestamp()
     where d.ctid = any ((select rows from lapsed)::tid[])
    returning d.*
  ),
  letters as (${insertDeadLetters(schema)}
  )
  select c.subscription_id, c.lane, c.id, l.id, c.last_error_code, c.attempt_count, c.max_attempts, e.*
    from changed c
    left join letters l on l.subscription_id = c.subscription_id and l.position = c.id
    left join lateral (
      select ${EVENT_COLUMNS}
        from ${schema}.outbox_event e
       where e.event_id = c.event_id and c.status = 'DEAD'
       offset 0) e on true`

/** What came back from workers that vanished. */
export interface LapsedReport {
  /** How many of each subscription, dead ones among them. */
  readonly returned: ReadonlyMap<number, number>
  readonly dead: readonly CrashedDelivery[]
}

/** Returns deliveries whose lease lapsed, by the database's clock. */
export async function returnLapsed(
  client: PgClient,
  schema: QuotedSchema,
  subscriptionIds: readonly number[],
): Promise<LapsedReport> {
  const sql = returnLapsedSql(schema, 'd.locked_until < clock_timestamp()')
  return toReport(await rawQuery(client, sql, [subscriptionIds]))
}

/**
 * Returns everything the last owner of these lanes had in hand. The caller has just taken the lanes, which lapse no
 * earlier than what was claimed under them, in the same transaction.
 */
export async function returnLanes(
  client: PgClient,
  schema: QuotedSchema,
  subscriptionId: number,
  lanes: readonly number[],
): Promise<LapsedReport> {
  const sql = returnLapsedSql(schema, 'd.lane = any ($2::smallint[])')
  return toReport(await rawQuery(client, sql, [[subscriptionId], lanes]))
}

function toReport(rows: readonly RawRow[]): LapsedReport {
  const returned = new Map<number, number>()
  for (const [id] of rows) returned.set(Number(id), (returned.get(Number(id)) ?? 0) + 1)
  return { returned, dead: rows.filter((row) => row[3] !== null).map(toCrashed) }
}

function toCrashed(row: RawRow): CrashedDelivery {
  const position = row[2] as string
  const event = toEvent(row, 7, position)
  return {
    deadLetterId: row[3] as string,
    delivery: { subscriptionId: Number(row[0]), lane: Number(row[1]), position },
    eventId: event.eventId,
    errorCode: row[4] as string,
    attempt: Number(row[5]),
    maxAttempts: Number(row[6]),
    event,
  }
}
