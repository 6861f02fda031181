import { NotFoundError } from '../../runtime/errors.ts'
import type { RegisteredSubscription } from '../subscription-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { SUBSCRIPTION_COLUMNS, toSubscription } from './read-subscriptions.ts'

const setPausedSql = (schema: QuotedSchema): string => `
  with changed as (
    update ${schema}.outbox_subscription s
       set paused_at = case when $2::boolean then coalesce(s.paused_at, clock_timestamp()) end,
           paused_by = case when $2::boolean then coalesce(s.paused_by, $3) end,
           updated_at = clock_timestamp()
     where s.name = $1
    returning *
  ),
  logged as (
    insert into ${schema}.outbox_operator_log (operator, action, target, affected)
    select $3, case when $2::boolean then 'pause' else 'resume' end, jsonb_build_object('subscription', name), 1
      from changed
    returning 1
  )
  select ${SUBSCRIPTION_COLUMNS} from changed s`

/** Stops or resumes claims of a subscription, and records who did it in the same statement. */
export async function setPaused(
  pool: PgPool,
  schema: QuotedSchema,
  name: string,
  paused: boolean,
  operator: string,
): Promise<RegisteredSubscription> {
  const [row] = await withClient(pool, (client) => rawQuery(client, setPausedSql(schema), [name, paused, operator]))
  if (row === undefined) throw new NotFoundError('subscription', name)
  return toSubscription(row)
}
