import { type PgClient, type RawRow, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

/** What a subscription wanted from some moment on. One that was widened has several. */
export interface Scope {
  readonly id: string
  readonly subscriptionId: number
  readonly startFrom: string
  readonly startAt: string | null
  readonly beganSnapshot: string | null
  readonly endedSnapshot: string | null
  readonly abandoned: boolean
}

const scopesSql = (schema: QuotedSchema): string => `
  select k.id, k.subscription_id, k.start_from, k.start_at, k.began_snapshot, k.ended_snapshot, k.abandoned
    from ${schema}.outbox_scope k
   where $1::int[] is null or k.subscription_id = any ($1::int[])
   order by k.id`

/** The scopes of these subscriptions, oldest first; null for all there are. */
export async function readScopes(
  client: PgClient,
  schema: QuotedSchema,
  subscriptionIds: readonly number[] | null,
): Promise<readonly Scope[]> {
  return (await rawQuery(client, scopesSql(schema), [subscriptionIds])).map(toScope)
}

function toScope(row: RawRow): Scope {
  const [id, subscriptionId, startFrom, startAt = null, began = null, ended = null, abandoned] = row
  return {
    id: id as string,
    subscriptionId: Number(subscriptionId),
    startFrom: startFrom as string,
    startAt,
    beganSnapshot: began,
    endedSnapshot: ended,
    abandoned: abandoned === 't',
  }
}
