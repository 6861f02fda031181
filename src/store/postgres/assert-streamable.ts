import { CommitpostError } from '../../runtime/errors.ts'
import { describeError } from '../../runtime/text.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import { openReplication } from './direct-client.ts'
import { driverErrorOf } from './driver-error.ts'
import { type QuotedSchema, quoteIdentifier } from './identifiers.ts'
import { assertPublished, streamUnavailable } from './publication.ts'
import { serverIdentity } from './slot.ts'

const FACTS_SQL = `select current_setting('wal_level'), pg_is_in_recovery(), current_user`

/** Throws STREAM_UNAVAILABLE with what is to be done, where the server's log cannot be read. */
export async function assertStreamable(pool: PgPool, appPool: PgPool, schema: QuotedSchema): Promise<void> {
  const [row] = await withClient(pool, (client) => rawQuery(client, FACTS_SQL, []))
  const [walLevel, inRecovery, user] = (row ?? []).map((value) => value ?? '')
  if (inRecovery === 't') {
    throw streamUnavailable(
      'stream-of-standby',
      'this server is a standby. Give the pool the address of the primary',
    )
  }
  if (walLevel !== 'logical') {
    throw streamUnavailable(
      'stream-wal-level',
      `wal_level is "${walLevel}". Set it and restart the server: alter system set wal_level = 'logical'`,
      { data: { level: walLevel ?? '' } },
    )
  }
  await withClient(pool, (client) => assertPublished(client, schema))
  await assertReplication(appPool, user as string)
}

/** The SQLSTATE of too many connections, of those that send the log too. */
const NO_FREE_CONNECTION = '53300'

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
    const said = describeError(error)
    if (found.code === NO_FREE_CONNECTION) {
      throw streamUnavailable(
        'stream-without-connection',
        `the server has no free connection for it (${said}). If it names max_wal_senders, set that higher ` +
          'and restart the server: alter system set max_wal_senders = 20',
        { cause: error, data: { said } },
      )
    }
    const role = quoteIdentifier(user)
    throw streamUnavailable(
      'stream-not-allowed',
      `the server refuses a replication connection (SQLSTATE ${found.code}: ${said}). As a superuser: ` +
        `alter role ${role} replication. The connection must lead straight to the server, not through ` +
        'a pooler, and pg_hba.conf must allow it',
      { cause: error, data: { state: found.code, said, role } },
    )
  }
}
