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
 * Tries to lock the rows of a CTE with `tid` and `version` (their ctid and xmin), waiting for nobody. Adds `got`: false
 * for a row that somebody else has locked, and for one that has changed since this statement began.
 */
export const tryLock = (schema: QuotedSchema, rows: string): string => `
    select r.*, l.tid is not null as got
      from ${rows} r
      left join lateral (
        select d.ctid as tid from ${schema}.outbox_delivery d
         where d.ctid = r.tid and d.xmin = r.version
           for update skip locked) l on true`
