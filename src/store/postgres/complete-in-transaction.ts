import type { ClaimedDelivery } from '../../delivery/delivery.ts'
import { LeaseLostError } from '../../runtime/errors.ts'
import { property, textProperty } from '../../runtime/property.ts'
import type { Transaction } from '../transaction.ts'
import type { QuotedSchema } from './identifiers.ts'

// A row's xmin has 32 bits; its epoch is that of the id it is nearest to.
const fullXmin = `(x.id + mod(mod(d.xmin::text::bigint - x.id, 4294967296) + 6442450944, 4294967296) - 2147483648)`

// By primary key. The token is the guard: whoever lost the lease completes nothing. What this very transaction has
// completed already stays so, in whichever of its savepoints: what is seen although it has not ended is its own.
// Always one row, which also names the subscription for the error.
const completeSql = (schema: QuotedSchema): string => `
  with done as (
    update ${schema}.outbox_delivery d
       set status = 'DONE', processed_at = clock_timestamp(), updated_at = clock_timestamp(), suspect = false,
           locked_by = null, locked_until = null, lease_token = null
     where d.subscription_id = $1::text::integer and d.lane = $2::text::smallint and d.id = $3::text::bigint
       and d.lease_token = $4::text::bigint
    returning 1
  )
  select ((select count(*) from done)
          + (select count(*) from ${schema}.outbox_delivery d,
                    (select pg_current_xact_id()::text::bigint as id) x
              where d.subscription_id = $1::text::integer and d.lane = $2::text::smallint and d.id = $3::text::bigint
                and d.status = 'DONE'
                and pg_xact_status(${fullXmin}::text::xid8) = 'in progress'))::text as completed,
         (select s.name from ${schema}.outbox_subscription s where s.id = $1::text::integer) as subscription`

/** Makes a delivery DONE in the handler's own transaction, if this worker still holds its lease. */
export async function completeInTransaction(
  tx: Transaction,
  schema: QuotedSchema,
  delivery: ClaimedDelivery,
): Promise<void> {
  const { subscriptionId, lane, position, lease, event } = delivery
  const params = [String(subscriptionId), String(lane), position, lease.token]
  const { rows } = await tx.query(completeSql(schema), params)
  if (property(rows[0], 'completed') === '1') return
  const subscription = textProperty(rows[0], 'subscription') ?? String(subscriptionId)
  throw new LeaseLostError({ eventId: event.eventId, subscription })
}
