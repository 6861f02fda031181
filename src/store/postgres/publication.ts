import { CommitpostError } from '../../runtime/errors.ts'
import { type PgClient, rawQuery } from './client.ts'
import { type QuotedSchema, quoteIdentifier } from './identifiers.ts'

const publicationSql = (schema: QuotedSchema): string =>
  `select ${schema}.outbox_publication(), ${schema}.outbox_published_as()`

/** Throws STREAM_UNAVAILABLE with the statement that makes it, where events do not all appear in the log. */
export async function assertPublished(client: PgClient, schema: QuotedSchema): Promise<void> {
  const [row] = await rawQuery(client, publicationSql(schema), [])
  if ((row?.[1] ?? null) !== null) return
  const name = quoteIdentifier(row?.[0] as string)
  throw streamUnavailable(
    `its publication is missing, or leaves out events. As the owner of the tables, who needs CREATE on the database: ` +
      `drop publication if exists ${name}; create publication ${name} for table ${schema}.outbox_event ` +
      `with (publish = 'insert', publish_via_partition_root = true)`,
  )
}

/** Why the server's log cannot be read, with what is to be done about it. */
export function streamUnavailable(why: string, cause?: unknown): CommitpostError {
  return new CommitpostError(
    'STREAM_UNAVAILABLE',
    `There can be no log stream, because ${why}. Until then leave out engine: 'stream'; the queue works as it is.`,
    { cause },
  )
}
