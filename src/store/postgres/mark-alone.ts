import type { ClaimedDelivery } from '../../delivery/delivery.ts'
import { sqlState } from '../../runtime/sql-state.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

/** How long it waits for a row that somebody else has locked: long enough for a heartbeat. All else stands still. */
const PATIENCE_MS = 250

const LOCK_NOT_AVAILABLE = '55P03'

// The token is the guard. Written apart from the claim and just before the handler runs: of a claim whose answer was
// lost nobody runs anything, and nothing may be charged for that.
const markAloneSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_delivery d
     set suspect = true, updated_at = clock_timestamp()
   where d.subscription_id = $1 and d.lane = $2 and d.id = $3 and d.lease_token = $4
     and d.locked_until > clock_timestamp()
     and (select set_config('lock_timeout', '${PATIENCE_MS}', true)) is not null
  returning d.id`

/** Writes down that a delivery is about to run with nothing beside it. False, and nothing is written, if it must not. */
export async function markAlone(
  pool: PgPool,
  schema: QuotedSchema,
  { subscriptionId, lane, position, lease }: ClaimedDelivery,
): Promise<boolean> {
  const values = [subscriptionId, lane, position, lease.token]
  try {
    const rows = await withClient(pool, (client) => rawQuery(client, markAloneSql(schema), values))
    return rows.length > 0
  } catch (error) {
    if (sqlState(error) === LOCK_NOT_AVAILABLE) return false
    throw error
  }
}
