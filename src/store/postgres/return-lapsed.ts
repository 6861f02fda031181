import type { CrashedDelivery } from '../queue-store.ts'
import { type PgClient, type RawRow, rawQuery } from './client.ts'
import { appendHistory, insertDeadLetters } from './dead-letter-sql.ts'
import { EVENT_COLUMNS, toEvent } from './event-row.ts'
import { HELD_NOW } from './held-since.ts'
import type { QuotedSchema } from './identifiers.ts'
import { GOT, IS_GOT, tryLock } from './lane-sql.ts'

/** The error code of a delivery whose workers died while they ran it alone. */
const CRASHED = 'CRASHED'

/** How many claims are looked at together. */
const LEASES_AT_ONCE = 20

// What a worker that vanished had in hand. A delivery that ran among others becomes a suspect and gets its attempt
// back: any of them may have killed the process. So does one of a group of suspects, which nobody marks. A row in hand
// that is marked (mark-alone.ts) ran alone, so the crash is its own: the attempt stays spent,
// the next one waits (2, 4, 8 … s, at most a minute), and the last makes it DEAD.
const returnSql = (schema: QuotedSchema, { leases, isMeant, afterwards }: Which): string => `
  with leases as materialized (
    select l.subscription_id, l.token, l.positions from ${schema}.outbox_lease l
     where l.subscription_id = any ($1::int[]) and ${leases}
  ),
  in_hand as materialized (
    select l.subscription_id, l.token, d.id, d.version, ${isMeant} as is_meant
      from leases l
     cross join lateral unnest(l.positions) as p(id)
     cross join lateral (
       select d.id, d.xmin as version, d.lane, d.locked_until from ${schema}.outbox_delivery d
        where d.id = p.id and d.subscription_id = l.subscription_id and d.lease_token = l.token
       offset 0) d
  ),
  tried as materialized (${tryLock(schema, '(select * from in_hand where is_meant)', 'r.subscription_id')}),
  changed as (
    update ${schema}.outbox_delivery d
       set status = case when d.suspect and d.attempt_count >= d.max_attempts then 'DEAD' else 'PENDING' end,
           held = not (d.suspect and d.attempt_count >= d.max_attempts) or d.ordering_key is not null
              and (select s.on_dead = 'block' from ${schema}.outbox_subscription s where s.id = d.subscription_id),
           held_since = case when d.suspect and d.attempt_count >= d.max_attempts then null else ${HELD_NOW} end,
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
      from ${GOT}
     where ${IS_GOT}
    returning d.*
  ),
  letters as (${insertDeadLetters(schema)}
  )${afterwards}
  select c.subscription_id, c.lane, c.id, l.id, c.last_error_code, c.attempt_count, c.max_attempts, e.*
    from changed c
    left join letters l on l.subscription_id = c.subscription_id and l.position = c.id
    left join lateral (
      select ${EVENT_COLUMNS}
        from ${schema}.outbox_event e
       where e.event_id = c.event_id and c.status = 'DEAD'
       offset 0) e on true`

/** Which deliveries are to be returned, and what is done with their leases. */
interface Which {
  /** Which leases to look at, of `l`. */
  readonly leases: string
  /** Which of their deliveries are returned, of `d`. */
  readonly isMeant: string
  /** CTEs that come after all others. */
  readonly afterwards: string
}

// A lease of which something is left is looked at again a second later, after those that have waited longer: what
// somebody has locked must not stand in the way of others.
const lapsed = (schema: QuotedSchema): Which => ({
  leases: `l.until < clock_timestamp()
     order by l.until
     limit ${LEASES_AT_ONCE}
       for update skip locked`,
  isMeant: 'd.locked_until < clock_timestamp()',
  afterwards: `,
  remaining as materialized (
    select h.token from in_hand h where not exists (select from tried t where t.token = h.token and t.id = h.id and t.got)
  ),
  ended as (
    delete from ${schema}.outbox_lease l using leases e
     where l.subscription_id = e.subscription_id and l.token = e.token and e.token not in (select token from remaining)
  ),
  postponed as (
    update ${schema}.outbox_lease l set until = clock_timestamp() + interval '1 second' from leases e
     where l.subscription_id = e.subscription_id and l.token = e.token and e.token in (select token from remaining)
  )`,
})

const OF_LANES: Which = {
  leases: 'l.lanes && $2::smallint[]',
  isMeant: 'd.lane = any ($2::smallint[])',
  afterwards: '',
}

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
  return toReport(await rawQuery(client, returnSql(schema, lapsed(schema)), [subscriptionIds]))
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
  return toReport(await rawQuery(client, returnSql(schema, OF_LANES), [[subscriptionId], lanes]))
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
