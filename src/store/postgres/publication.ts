import { type RefusalOptions, type RefusalReason, RefusedError } from '../../runtime/refused-error.ts'
import { type PgClient, rawQuery } from './client.ts'
import { type QuotedSchema, quoteIdentifier } from './identifiers.ts'

const publicationSql = (schema: QuotedSchema): string =>
  `select ${schema}.outbox_publication(), ${schema}.outbox_published_as()`

/** Throws STREAM_UNAVAILABLE with the statement that makes it, where events do not all appear in the log. */
export async function assertPublished(client: PgClient, schema: QuotedSchema): Promise<void> {
  const [row] = await rawQuery(client, publicationSql(schema), [])
  if ((row?.[1] ?? null) !== null) return
  const name = quoteIdentifier(row?.[0] as string)
  const statement =
    `drop publication if exists ${name}; create publication ${name} for table ${schema}.outbox_event ` +
    `with (publish = 'insert', publish_via_partition_root = true)`
  throw streamUnavailable(
    'stream-unpublished',
    `its publication is missing, or leaves out events. As the owner of the tables, who needs CREATE on the database: ${statement}`,
    { data: { statement } },
  )
}

/** Why the server's log cannot be read, with what is to be done about it. */
export function streamUnavailable(
  reason: RefusalReason,
  why: string,
  options: RefusalOptions = {},
): RefusedError {
  return new RefusedError(
    reason,
    `There can be no log stream, because ${why}. Until then leave out engine: 'stream'; the queue works as it is.`,
    options,
  )
}
