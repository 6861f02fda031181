import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

/** Events that took the place of others: the two lists belong together, one by one. */
export interface StandIns {
  readonly eventIds: readonly string[]
  readonly originals: readonly string[]
}

const standInsSql = (schema: QuotedSchema): string =>
  `select v.event_id, v.original from ${schema}.outbox_stand_in v`

/** All there are. As values for other statements: joined to them, the view would keep these from running in parallel. */
export async function readStandIns(client: PgClient, schema: QuotedSchema): Promise<StandIns> {
  const rows = await rawQuery(client, standInsSql(schema), [])
  return { eventIds: rows.map(([id]) => id as string), originals: rows.map(([, id]) => id as string) }
}
