import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

// Parked behind nothing: what it waited for was settled while it was being parked. Always safe to let go, since a
// claim looks at what stands before it on its key anyway. One page of the parked at a time, in the order of
// outbox_delivery_due; a row that somebody has locked is met again in the next round.
const unparkStrandedSql = (schema: QuotedSchema): string => `
  with page as materialized (
    select p.* from (
      select l.lane from ${schema}.outbox_lane l
       where l.subscription_id = $1 and l.lane >= $2::smallint order by l.lane) l
     cross join lateral (
       select d.lane, d.id,
              (select h.id from ${schema}.outbox_delivery h
                where h.subscription_id = $1 and h.lane = d.lane and h.ordering_key = d.ordering_key and h.held
                  and h.id < d.id
                limit 1) is null as stranded
         from ${schema}.outbox_delivery d
        where d.subscription_id = $1 and d.lane = l.lane and d.held and not d.suspect
          and d.next_retry_at = 'infinity' and d.id > case when l.lane = $2 then $3::bigint else 0 end
        order by d.id
        limit $4) p
     limit $4
  ),
  freed as (
    update ${schema}.outbox_delivery d
       set next_retry_at = now(), updated_at = clock_timestamp()
     where d.subscription_id = $1 and d.id = any (array(
       select f.id from ${schema}.outbox_delivery f
        where f.id = any (array(select id from page where stranded)) and f.subscription_id = $1
          and f.status = 'PENDING' and f.next_retry_at = 'infinity'
          for update skip locked))
  )
  select lane, id, count(*) over () from page order by lane desc, id desc limit 1`

/** How many parked deliveries one look reads: a blocked key may have hundreds of thousands. */
const PAGE = 5_000

const START = { lane: '0', id: '0' } as const

/** Looks through the parked deliveries of a subscription, page by page and again and again. */
export class StrandedScan {
  readonly #pool: PgPool
  readonly #schema: QuotedSchema
  readonly #subscriptionId: number
  #after: { readonly lane: string; readonly id: string } = START

  constructor(pool: PgPool, schema: QuotedSchema, subscriptionId: number) {
    this.#pool = pool
    this.#schema = schema
    this.#subscriptionId = subscriptionId
  }

  /** Looks at the next page and lets go what is parked although nothing stands before it any more. */
  async next(): Promise<void> {
    const { lane, id } = this.#after
    const values = [this.#subscriptionId, lane, id, PAGE]
    const [last] = await withClient(this.#pool, (client) =>
      rawQuery(client, unparkStrandedSql(this.#schema), values),
    )
    const isWhole = Number(last?.[2] ?? 0) < PAGE
    this.#after = isWhole ? START : { lane: last?.[0] ?? '0', id: last?.[1] ?? '0' }
  }
}
