import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** The user and group a server process runs as; `undefined` means "as this process". */
export type Account = { readonly uid: number; readonly gid: number } | undefined

/** "nobody": PostgreSQL refuses to run as root, and any other number will do, known to the system or not. */
const nobody = 65534

/** Root hands the server to another user, because PostgreSQL refuses to run as root. Others run it themselves. */
export function serverAccount(): Account {
  return process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : undefined
}

/** The account that owns an existing data directory, when this process may act as it. */
export async function ownerAccount(directory: string, fallback: Account): Promise<Account> {
  if (fallback === undefined) return undefined
  const { uid, gid } = await stat(directory)
  return uid === 0 ? fallback : { uid, gid }
}

/** The first directory on the way to `path` that the account may not enter, or `undefined` when all are open. */
export async function closedParent(path: string, account: Account): Promise<string | undefined> {
  if (account === undefined) return undefined
  const parent = dirname(path)
  if (parent === path) return undefined
  const above = await closedParent(parent, account)
  if (above !== undefined) return above
  const { mode, uid, gid } = await stat(parent)
  const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001
  return (mode & bit) === 0 ? parent : undefined
}
