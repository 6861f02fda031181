import type { Engine, OrderBy, RegisteredSubscription } from '../subscription-store.ts'
import { type PgClient, type RawRow, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

/** The columns `toSubscription` maps, of a row called `s`. */
export const SUBSCRIPTION_COLUMNS =
  's.id, s.name, s.state, s.order_by, s.lanes, to_json(s.event_types), s.paused_at is not null, s.engine'

/** Maps a row of SUBSCRIPTION_COLUMNS. */
export function toSubscription(row: RawRow): RegisteredSubscription {
  const eventTypes = row[5]
  return {
    id: Number(row[0]),
    name: row[1] as string,
    state: row[2] as RegisteredSubscription['state'],
    orderBy: row[3] as OrderBy,
    lanes: Number(row[4]),
    eventTypes: eventTypes === null || eventTypes === undefined ? null : (JSON.parse(eventTypes) as string[]),
    paused: row[6] === 't',
    engine: row[7] as Engine,
  }
}

const byNameSql = (schema: QuotedSchema): string => `
  select ${SUBSCRIPTION_COLUMNS} from ${schema}.outbox_subscription s
   where s.name = $1 and s.state <> 'retired'`

/** The subscription that has this name now, or null. */
export async function readSubscriptionByName(
  client: PgClient,
  schema: QuotedSchema,
  name: string,
): Promise<RegisteredSubscription | null> {
  const [row] = await rawQuery(client, byNameSql(schema), [name])
  return row === undefined ? null : toSubscription(row)
}

const byIdsSql = (schema: QuotedSchema): string => `
  select ${SUBSCRIPTION_COLUMNS} from ${schema}.outbox_subscription s where s.id = any ($1::int[]) order by s.id`

/** Subscriptions by id. */
export async function readSubscriptions(
  client: PgClient,
  schema: QuotedSchema,
  ids: readonly number[],
): Promise<readonly RegisteredSubscription[]> {
  return (await rawQuery(client, byIdsSql(schema), [ids])).map(toSubscription)
}
