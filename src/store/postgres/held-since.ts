/** What `held_since` of a delivery becomes when it is held to be claimed again. */
export const HELD_NOW = 'pg_current_xact_id()::text::bigint'

/**
 * Since when a delivery is held, as its indexes have it. A dead one does not say, nor one that somebody held by hand: that
 * is as good as now, because a bound leaves out what is older. So no dead letter that blocks its key holds a bound back.
 */
export const heldSince = (delivery: string): string => `coalesce(${delivery}.held_since, 9223372036854775807)`
