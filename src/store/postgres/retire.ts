import { NotFoundError } from '../../runtime/errors.ts'
import { RefusedError } from '../../runtime/refused-error.ts'
import type { RetireReport, RetireRequest } from '../subscription-store.ts'
import { closeRetired } from './advance-joining.ts'
import { type PgPool, rawQuery, withTransaction } from './client.ts'
import { driverErrorOf } from './driver-error.ts'
import type { QuotedSchema } from './identifiers.ts'
import { operatorName, operatorNote } from './operator.ts'
import { refusal } from './refusal.ts'

// A function of the database, because operators use it from SQL too and need no right on the tables behind it.
const retireSql = (schema: QuotedSchema): string => `
  select r.discarded, r.unresolved, r.locked from ${schema}.outbox_retire($1, $2, $3, $4, $5) r`

/** Ends a subscription, in one transaction with the operator's record and with what becomes of its open deliveries. */
export async function retire(
  pool: PgPool,
  schema: QuotedSchema,
  name: string,
  request: RetireRequest,
): Promise<RetireReport> {
  const { operator, note, discard, force } = request
  const values = [name, operatorName(operator), operatorNote(note), discard, force]
  try {
    const [row] = await withTransaction(pool, (client) => rawQuery(client, retireSql(schema), values))
    // Where no publisher is under way and nothing is locked this is all; the workers' housekeeping does the rest.
    if ((await closeRetired(pool, schema)) > 0) await closeRetired(pool, schema)
    return {
      discarded: Number(row?.[0]),
      unresolvedDeadLetters: Number(row?.[1]),
      locked: Number(row?.[2]),
    }
  } catch (error) {
    throw retirementRefusal(error, name)
  }
}

function retirementRefusal(error: unknown, name: string): unknown {
  const refused = driverErrorOf(error)
  if (refused?.code === 'P0002') return new NotFoundError('subscription', name, { cause: error })
  if (refused?.code === '55P03') {
    const message =
      `Subscription "${name}" was not retired, and nothing was changed: for five seconds somebody else had it, one of ` +
      'its lanes or the list of subscriptions locked. Try again once that transaction has ended.'
    return new RefusedError('subscription-locked', message, { data: { subscription: name }, cause: error })
  }
  return refusal(error)
}
