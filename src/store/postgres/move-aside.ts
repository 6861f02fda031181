import { NotFoundError } from '../../runtime/errors.ts'
import type { MovedAside } from '../redrive-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import { driverErrorOf } from './driver-error.ts'
import type { QuotedSchema } from './identifiers.ts'
import { operatorName, operatorNote } from './operator.ts'
import { redriveRefusal } from './redrive-refusal.ts'

const moveSql = (schema: QuotedSchema): string =>
  `select moved, free from ${schema}.outbox_move_aside($1, $2, $3, $4)`

/** Moves a part of what waits on a blocked key aside, and frees the key with the last part. */
export async function moveAside(
  pool: PgPool,
  schema: QuotedSchema,
  subscription: string,
  orderingKey: string,
  operator: string,
  note: string | null,
): Promise<MovedAside> {
  const values = [subscription, orderingKey, operatorName(operator), operatorNote(note)]
  try {
    const [row] = await withClient(pool, (client) => rawQuery(client, moveSql(schema), values))
    return { moved: Number(row?.[0]), free: row?.[1] === 't' }
  } catch (error) {
    if (driverErrorOf(error)?.code === 'P0002')
      throw new NotFoundError('subscription', subscription, { cause: error })
    throw redriveRefusal(error, null)
  }
}
