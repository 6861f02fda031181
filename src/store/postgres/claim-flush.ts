import { isKeeper, type PgClient } from './client.ts'
import { type QuotedSchema, sequenceName } from './identifiers.ts'

/**
 * As many claims of a session wait for the disk before the first that does not. A crash of the server ends every session:
 * what it may have undone is claimed again by one of these, so that no event escapes the count of its attempts for ever.
 */
const DURABLE_CLAIMS = 50

const made = new WeakMap<PgClient, number>()

/** Whether the next claim of this session need not wait for the disk. Only where the session is the worker's alone. */
export function mayFlushLater(client: PgClient): boolean {
  return isKeeper(client) && (made.get(client) ?? 0) >= DURABLE_CLAIMS
}

/** Takes note of a claim that brought something. */
export function claimedOn(client: PgClient): void {
  made.set(client, (made.get(client) ?? 0) + 1)
}

/** The low bits of a token that are the sequence's where the others are the clock's. */
const SEQUENCE_BITS = 20

/**
 * The token of a claim, as an SQL expression. Where `later` is true, the commit does not wait for the disk: a crash of the
 * server may undo the claim, and the number with it, and give the number again. The worker that had the first one may still
 * be alive and believe in it, so that such a token begins with the millisecond, which does not come again.
 */
export const leaseToken = (schema: QuotedSchema, later: string): string => {
  const next = `nextval(${sequenceName(schema, 'outbox_lease_token')})`
  return `case when ${later} and set_config('synchronous_commit', 'off', true) is not null
                then ((extract(epoch from clock_timestamp()) * 1000)::bigint << ${SEQUENCE_BITS})
                     | (${next} & ${2 ** SEQUENCE_BITS - 1})
                else ${next} end`
}
