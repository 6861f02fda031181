import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chown, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Account, closedParent, ownerAccount } from './account.ts'
import { EmbeddedPostgresError } from './error.ts'
import { lockHolder } from './workspace.ts'

/** What is needed to make or reuse a data directory. */
export interface DataDirectoryRequest {
  readonly dataDir: string
  readonly initdb: string
  readonly account: Account
  /** Told of the unfinished directory and its `initdb` process, so that neither outlives this process. */
  readonly onUnfinished: (directory: string | undefined, pid: number | undefined) => void
}

/**
 * Makes sure that `dataDir` is an initialised data directory and returns the account that may run it.
 * A new one is made beside it and moved into place when complete, so that an interrupted start leaves no half of it.
 */
export async function ensureDataDirectory(request: DataDirectoryRequest): Promise<Account> {
  const { dataDir, account } = request
  await mkdir(dirname(dataDir), { recursive: true })
  await refuseClosed(dataDir, account)
  if (await isInitialised(dataDir)) return await reuse(dataDir, account)
  const unfinished = `${dataDir}.new-${randomBytes(6).toString('hex')}`
  request.onUnfinished(unfinished, undefined)
  try {
    await mkdir(unfinished, { mode: 0o700 })
    if (account !== undefined) await chown(unfinished, account.uid, account.gid)
    await initialise(unfinished, request)
    await moveIntoPlace(unfinished, dataDir)
  } finally {
    await rm(unfinished, { recursive: true, force: true })
    request.onUnfinished(undefined, undefined)
  }
  return await reuse(dataDir, account)
}

async function isInitialised(dataDir: string): Promise<boolean> {
  const names = await readdir(dataDir).catch((cause: unknown): string[] => {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return []
    throw unusable(`The data directory ${dataDir} cannot be read by this user. Choose another one.`, cause)
  })
  if (names.includes('PG_VERSION')) return true
  if (names.length === 0) return false
  throw unusable(
    `${dataDir} is neither empty nor a PostgreSQL data directory. Choose another one or empty it.`,
    undefined,
  )
}

async function refuseClosed(dataDir: string, account: Account): Promise<void> {
  const closed = await closedParent(dataDir, account)
  if (closed === undefined) return
  throw unusable(
    `As root the server runs as user id ${account?.uid}, which may not enter ${closed}. ` +
      'Choose a data directory that every user may reach, or start as an ordinary user.',
    undefined,
  )
}

/** A lock file whose process id now belongs to some other program (a restarted container) would stop the server. */
async function reuse(dataDir: string, account: Account): Promise<Account> {
  const holder = await lockHolder(dataDir)
  if (holder !== undefined && programName(holder)?.startsWith('postgres') === false) {
    await rm(`${dataDir}/postmaster.pid`, { force: true })
  }
  return await ownerAccount(dataDir, account)
}

function programName(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    return undefined // gone, or no /proc: PostgreSQL decides
  }
}

async function initialise(directory: string, request: DataDirectoryRequest): Promise<void> {
  const options = [
    '-U',
    'postgres',
    '-A',
    'trust',
    '-E',
    'UTF8',
    '--locale=C',
    '--no-sync',
    '--no-instructions',
  ]
  const child = spawn(request.initdb, ['-D', directory, ...options], {
    ...request.account,
    cwd: dirname(dirname(dirname(request.initdb))),
    detached: true, // a process group of its own, which the watchdog can end as a whole
    stdio: ['ignore', 'ignore', 'pipe'],
    windowsHide: true,
  })
  request.onUnfinished(directory, child.pid)
  const complaints: string[] = []
  child.stderr.setEncoding('utf8').on('data', (text: string) => complaints.push(text))
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0)
    throw unusable(`initdb failed for ${request.dataDir}:\n${complaints.join('').trim()}`, undefined)
}

/** Two starters may race for a new directory: the slower one finds it made, and the server's own lock decides. */
async function moveIntoPlace(unfinished: string, dataDir: string): Promise<void> {
  await rename(unfinished, dataDir).catch(async (error: unknown) => {
    if (await isInitialised(dataDir)) return
    throw error
  })
}

function unusable(message: string, cause: unknown): EmbeddedPostgresError {
  return new EmbeddedPostgresError('EMBEDDED_POSTGRES_DATA_DIRECTORY', message, { cause })
}
