import type { QuotedSchema } from './identifiers.ts'

/** Until when the deliveries of a claim are leased, of a CTE `mine`: the lease of none outlives its lane's. */
export const LEASE_OF_LANES = '(select min(m.until) from mine m)'

/** How such a claim is written down. */
export const RECORD_OF_LANES: { readonly until: string; readonly lanes: string } = {
  until: LEASE_OF_LANES,
  lanes: 'array(select m.lane from mine m)',
}

/**
 * The lanes of the request that are still this worker's, locked for the statement: a take-over waits for it, so that
 * an owner whose lease ran out cannot claim beside its successor. Locked by number, as everybody does who locks
 * several, and returned in the order they were asked for. Needs a CTE `open` with the subscription's id; the
 * parameters are SQL expressions.
 */
export const ownedLanes = (
  schema: QuotedSchema,
  { worker, lanes, epochs }: { readonly worker: string; readonly lanes: string; readonly epochs: string },
): string => `
    select l.lane, l.until
      from (select * from unnest(${lanes}::smallint[], ${epochs}::bigint[]) with ordinality as w(lane, epoch, turn)
             order by w.lane) w
     cross join lateral (
       select l.lane, l.until from ${schema}.outbox_lane l
        where l.subscription_id = (select id from open) and l.lane = w.lane and l.epoch = w.epoch
          and l.owner = ${worker} and l.until > clock_timestamp()
          for update) l
     order by w.turn`

/**
 * Tries to lock the rows of a CTE `r` with `id` and `version` (their xmin), waiting for nobody. Adds `got`: false for a
 * row that somebody else has locked, and for one that has changed since this statement began: the lock follows such a row
 * by its key, and finds another version. What is got is therefore as it was seen, and an UPDATE by key follows nothing.
 * `subscription` is the SQL expression of whose rows they are.
 */
export const tryLock = (
  schema: QuotedSchema,
  rows: string,
  subscription: '$1' | 'r.subscription_id',
): string => `
    select r.*, l.id is not null as got
      from ${rows} r
      left join lateral (
        select d.id from ${schema}.outbox_delivery d
         where d.id = r.id and d.subscription_id = ${subscription} and d.xmin = r.version
           for update skip locked) l on true`

/**
 * Of a CTE `tried`, with `id` and `subscription_id`: the rows that are `got`, as a table `g` to be joined to the rows `d` of
 * an UPDATE by `IS_GOT`. One row for each subscription with all its positions, and conditions that no join can hash or sort
 * by: each subscription's rows are looked up by primary key.
 */
export const GOT = `(select t.subscription_id, array_agg(t.id) as ids from tried t where t.got
              group by t.subscription_id) g`

/** Whether a row `d` is one of `GOT`. */
export const IS_GOT = 'd.id = any (g.ids) and d.subscription_id = any (array[g.subscription_id])'
