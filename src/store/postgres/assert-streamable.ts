import { CommitpostError } from '../../runtime/errors.ts'
import { describeError } from '../../runtime/text.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import { openReplication } from './direct-client.ts'
import { driverErrorOf } from './driver-error.ts'
import { plainName, type QuotedSchema, quoteIdentifier } from './identifiers.ts'
import { serverIdentity } from './slot.ts'

const factsSql = (schema: QuotedSchema): string => `
  select current_setting('wal_level'), pg_is_in_recovery(), ${schema}.outbox_publication(), current_user,
         exists (select 1 from pg_publication p join pg_publication_tables t on t.pubname = p.pubname
                  where p.pubname = ${schema}.outbox_publication() and p.pubinsert and p.pubviaroot
                    and t.schemaname = $1 and t.tablename = 'outbox_event')`

/** Throws STREAM_UNAVAILABLE with what is to be done, where the server's log cannot be read. */
export async function assertStreamable(pool: PgPool, appPool: PgPool, schema: QuotedSchema): Promise<void> {
  const [row] = await withClient(pool, (client) => rawQuery(client, factsSql(schema), [plainName(schema)]))
  const [walLevel, inRecovery, publication, user, isPublished] = (row ?? []).map((value) => value ?? '')
  if (inRecovery === 't') {
    throw unavailable('this server is a standby. Give the pool the address of the primary')
  }
  if (walLevel !== 'logical') {
    throw unavailable(
      `wal_level is "${walLevel}". Set it and restart the server: alter system set wal_level = 'logical'`,
    )
  }
  if (isPublished !== 't') {
    const name = quoteIdentifier(publication as string)
    throw unavailable(
      `its publication is missing. As the owner of the tables, who needs CREATE on the database: ` +
        `drop publication if exists ${name}; create publication ${name} for table ${schema}.outbox_event ` +
        `with (publish = 'insert', publish_via_partition_root = true)`,
    )
  }
  await assertReplication(appPool, user as string)
}

/** Whoever may open such a connection may read the log: asked of the server, since hosted ones have rights of their own. */
async function assertReplication(appPool: PgPool, user: string): Promise<void> {
  try {
    const client = await openReplication(appPool)
    await serverIdentity(client)
    await client.end()
  } catch (error) {
    if (error instanceof CommitpostError) throw error
    const found = driverErrorOf(error)
    if (found === null) throw error
    throw unavailable(
      `the server refuses a replication connection (SQLSTATE ${found.code}: ${describeError(error)}). As a superuser: ` +
        `alter role ${quoteIdentifier(user)} replication. The connection must lead straight to the server, not through ` +
        'a pooler, and pg_hba.conf must allow it',
      error,
    )
  }
}

function unavailable(why: string, cause?: unknown): CommitpostError {
  return new CommitpostError(
    'STREAM_UNAVAILABLE',
    `There can be no log stream, because ${why}. Until then leave out engine: 'stream'; the queue works as it is.`,
    { cause },
  )
}
