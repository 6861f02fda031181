import { property } from '../../runtime/property.ts'
import { type PgClient, type PgPool, type PgPoolClient, rawQuery } from './client.ts'

/** Enough for a busy pooler, which may hand the same connection back by chance. */
const ROUNDS = 8

/**
 * True if a pooler hands the server's session to somebody else between two transactions of this client, so that
 * nothing may be left in it: no LISTEN, no setting. Leaves nothing there itself.
 */
export async function isSessionShared(pool: PgPool, client: PgPoolClient): Promise<boolean> {
  // The server's own process is what it was told when it connected: nothing stands between.
  if (property(client, 'processID') === (await backendOf(client))) return false
  const other = await pool.connect()
  let isSound = false
  try {
    let isShared = false
    for (let round = 0; round < ROUNDS && !isShared; round += 1) isShared = await changesHands(client, other)
    isSound = true
    return isShared
  } finally {
    other.release(!isSound)
  }
}

/** With a session of its own a client keeps its backend, and no other client ever gets it. */
async function changesHands(client: PgClient, other: PgClient): Promise<boolean> {
  const before = await backendOf(client)
  await other.query('begin')
  const isTaken = (await backendOf(other)) === before
  const isReplaced = !isTaken && (await backendOf(client)) !== before
  await other.query('rollback')
  return isTaken || isReplaced
}

async function backendOf(client: PgClient): Promise<number> {
  const [row] = await rawQuery(client, 'select pg_backend_pid()', [])
  return Number(row?.[0])
}
