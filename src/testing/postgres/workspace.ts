import { randomBytes } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Account, closedParent } from './account.ts'
import { EmbeddedPostgresError } from './error.ts'

const prefix = 'commitpost-postgres-'
const ownerFile = 'owner.json'

/** Who uses a workspace. Process ids mean something only on one machine and in one process namespace. */
interface Owner {
  readonly place: string
  readonly pids: readonly number[]
}

/** A path for a new workspace. Known before it is made, so that the watchdog can be told first. */
export function newWorkspacePath(): string {
  return join(tmpdir(), `${prefix}${randomBytes(6).toString('hex')}`)
}

/** Makes a temporary directory that the server's account can enter, marked with the processes it belongs to. */
export async function createWorkspace(
  directory: string,
  account: Account,
  owners: readonly number[],
): Promise<void> {
  await mkdir(directory, { mode: 0o755 })
  await chmod(directory, 0o755) // whatever the umask
  await markOwners(directory, owners)
  const closed = await closedParent(directory, account)
  if (closed === undefined) return
  throw new EmbeddedPostgresError(
    'EMBEDDED_POSTGRES_DATA_DIRECTORY',
    `As root the server runs as user id ${account?.uid}, which may not enter ${closed}. ` +
      'Set TMPDIR to a directory that every user may enter.',
  )
}

/** Records the processes that have to be dead before the workspace counts as left behind. */
export async function markOwners(directory: string, pids: readonly number[]): Promise<void> {
  const owner: Owner = { place: place(), pids }
  await writeFile(join(directory, ownerFile), JSON.stringify(owner))
}

/** Removes the workspaces (and ends the servers) of processes that died together with their watchdog. */
export async function sweepWorkspaces(): Promise<void> {
  const names = await readdir(tmpdir()).catch(() => [])
  const own = names.filter((name) => name.startsWith(prefix)).map((name) => join(tmpdir(), name))
  await Promise.all(own.map((directory) => sweep(directory).catch(() => undefined))) // another user's: not ours to clear
}

async function sweep(directory: string): Promise<void> {
  if (process.getuid !== undefined && (await stat(directory)).uid !== process.getuid()) return
  const owner = JSON.parse(await readFile(join(directory, ownerFile), 'utf8')) as Owner
  if (owner.place !== place() || owner.pids.some(isAlive)) return
  const server = await lockHolder(join(directory, 'data'))
  if (server !== undefined && isServerOf(server, directory)) process.kill(server, 'SIGKILL')
  await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
}

/** The process id in a data directory's lock file, alive or not. */
export async function lockHolder(dataDir: string): Promise<number | undefined> {
  const text = await readFile(join(dataDir, 'postmaster.pid'), 'utf8').catch(() => '')
  const pid = Number(text.split('\n')[0])
  return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined
}

/** Whether a process exists, be it ours or another user's. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** Whether the process is a server that was started on a path under `directory`. Without /proc: unknown, so no. */
function isServerOf(pid: number, directory: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(directory)
  } catch {
    return false
  }
}

function place(): string {
  try {
    return `${hostname()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return hostname() // no /proc: one process namespace per machine
  }
}
