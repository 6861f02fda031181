import type { CrashedDelivery, RecoverReport } from '../queue-store.ts'
import { type PgPool, type RawRow, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { returnLapsed } from './return-lapsed.ts'

// One look for the many times when nothing is amiss. Walks the leases and outbox_delivery_suspect. Only suspects that
// could be claimed now count: to run one, everything else in the process has to wait. They are not all counted: after an
// outage there may be as many as all workers had in hand.
const lookSql = (schema: QuotedSchema): string => `
  select w.id,
         exists (select 1 from ${schema}.outbox_lease l
                  where l.subscription_id = w.id and l.until < clock_timestamp()),
         (select count(*) from (select from ${schema}.outbox_delivery d
           where d.subscription_id = w.id and d.held and d.suspect
             and d.next_retry_at <= clock_timestamp() and s.paused_at is null
             and (d.ordering_key is null
                  or (($2::text is null or exists (
                         select 1 from ${schema}.outbox_lane l
                          where l.subscription_id = w.id and l.lane = d.lane and l.owner = $2))
                      and not exists (select 1 from ${schema}.outbox_delivery h
                                       where h.subscription_id = w.id and h.lane = d.lane
                                         and h.ordering_key = d.ordering_key and h.held and h.id < d.id)))
           limit 100) claimable),
         s.state = 'retired', s.retired_by
    from unnest($1::int[]) as w(id)
    join ${schema}.outbox_subscription s on s.id = w.id`

/** How often leases are looked at in one go: a worker may vanish with as many claims as it has handlers. */
const MOST_LOOKS = 50

/** Returns what vanished workers left, counts the suspects that are due and tells what is retired. */
export async function recover(
  pool: PgPool,
  schema: QuotedSchema,
  subscriptionIds: readonly number[],
  workerId: string | null,
): Promise<RecoverReport> {
  return withClient(pool, async (client) => {
    const look = (): Promise<readonly RawRow[]> =>
      rawQuery(client, lookSql(schema), [subscriptionIds, workerId])
    const returned = new Map<number, number>()
    const dead: CrashedDelivery[] = []
    let seen = await look()
    const retired = retiredOf(seen)
    for (let looks = 0; looks < MOST_LOOKS && seen.some(([, lapsed]) => lapsed === 't'); looks += 1) {
      const lapsed = await returnLapsed(client, schema, subscriptionIds)
      for (const [id, count] of lapsed.returned) returned.set(id, (returned.get(id) ?? 0) + count)
      dead.push(...lapsed.dead)
      seen = await look()
      // What somebody has locked is left for the next time.
      if (lapsed.returned.size === 0) break
    }
    return { returned, dead, suspects: countsOf(seen), retired }
  })
}

function countsOf(rows: readonly RawRow[]): ReadonlyMap<number, number> {
  return new Map(
    rows.filter(([, , count]) => count !== '0').map(([id, , count]) => [Number(id), Number(count)]),
  )
}

function retiredOf(rows: readonly RawRow[]): ReadonlyMap<number, string | null> {
  const retired = rows.filter(([, , , isRetired]) => isRetired === 't')
  return new Map(retired.map(([id, , , , by]) => [Number(id), by ?? null]))
}
