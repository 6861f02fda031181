import type { QuotedSchema } from './identifiers.ts'

/**
 * The lanes of the request that are still this worker's, locked for the statement: a take-over waits for it, so that
 * an owner whose lease ran out cannot claim beside its successor. Needs a CTE `open` with the subscription's id; the
 * parameters are SQL expressions.
 */
export const ownedLanes = (
  schema: QuotedSchema,
  { worker, lanes, epochs }: { readonly worker: string; readonly lanes: string; readonly epochs: string },
): string => `
    select l.lane, l.until
      from unnest(${lanes}::smallint[], ${epochs}::bigint[]) with ordinality as w(lane, epoch, turn)
     cross join lateral (
       select l.lane, l.until from ${schema}.outbox_lane l
        where l.subscription_id = (select id from open) and l.lane = w.lane and l.epoch = w.epoch
          and l.owner = ${worker} and l.until > clock_timestamp()
          for update) l
     order by w.turn`
