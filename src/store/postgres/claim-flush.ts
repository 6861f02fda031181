import { isKeeper, type PgClient } from './client.ts'

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

/**
 * An SQL expression that lets the transaction's commit not wait for the disk where `later` is true. A crash of the server
 * may then undo the claim, and give the number of its lease again: see `newLeaseToken`.
 */
export const flushLater = (later: string): string =>
  `case when ${later} then set_config('synchronous_commit', 'off', true) end`
