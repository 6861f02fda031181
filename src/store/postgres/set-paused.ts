import { NotFoundError } from '../../runtime/errors.ts'
import type { RegisteredSubscription } from '../subscription-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { operatorName, operatorNote } from './operator.ts'
import { SUBSCRIPTION_COLUMNS, toSubscription } from './read-subscriptions.ts'

// One statement is one transaction: there is no pause without its record. Claims look at paused_at, so it holds for
// every worker at once.
const setPausedSql = (schema: QuotedSchema): string => `
  with changed as (
    update ${schema}.outbox_subscription s
       set paused_at = case when $2::boolean then clock_timestamp() end,
           paused_by = case when $2::boolean then $3::text end,
           updated_at = clock_timestamp()
     where s.name = $1 and s.state <> 'retired'
    returning s.*
  ),
  logged as (
    insert into ${schema}.outbox_operator_log (operator, action, target, affected, note)
    select $3::text, case when $2::boolean then 'pause' else 'resume' end,
           jsonb_build_object('subscription', s.name), 1, $4::text
      from changed s
  )
  select ${SUBSCRIPTION_COLUMNS} from changed s`

/** Stops or resumes claims of a subscription. Recorded with the operator's name, also when nothing changes. */
export async function setPaused(
  pool: PgPool,
  schema: QuotedSchema,
  name: string,
  paused: boolean,
  operator: string,
  note: string | null,
): Promise<RegisteredSubscription> {
  const values = [name, paused, operatorName(operator), operatorNote(note)]
  const [row] = await withClient(pool, (client) => rawQuery(client, setPausedSql(schema), values))
  if (row === undefined) throw new NotFoundError('subscription', name)
  return toSubscription(row)
}
