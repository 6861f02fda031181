import { NotFoundError } from '../../runtime/errors.ts'
import type { RegisteredSubscription } from '../subscription-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import { driverErrorOf } from './driver-error.ts'
import type { QuotedSchema } from './identifiers.ts'
import { operatorName, operatorNote } from './operator.ts'
import { SUBSCRIPTION_COLUMNS, toSubscription } from './read-subscriptions.ts'

// A function of the database: there is no pause without its record, and operators need no right on the table.
const setPausedSql = (schema: QuotedSchema): string =>
  `select ${SUBSCRIPTION_COLUMNS} from ${schema}.outbox_set_paused($1, $2, $3, $4) s`

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
  try {
    const [row] = await withClient(pool, (client) => rawQuery(client, setPausedSql(schema), values))
    return toSubscription(row ?? [])
  } catch (error) {
    if (driverErrorOf(error)?.code !== 'P0002') throw error
    throw new NotFoundError('subscription', name, { cause: error })
  }
}
