import { readdir, readFile, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { isRunning } from './is-running.ts'

const MEMORY = '/dev/shm'
const TMPFS = 0x01_02_19_94
const ROOM_BYTES = 6 * 1024 ** 3
const PREFIX = 'commitpost-run-'

/**
 * Where the data of this run's server can lie in memory, if there is plenty. Thousands of schemas are made and dropped in
 * a run, each of some hundred files, and ext4 searches for an inode that was not in use a moment ago for each of them.
 */
export async function directoryInMemory(): Promise<string | undefined> {
  const system = await statfs(MEMORY).catch(() => undefined)
  if (system?.type !== TMPFS || system.bavail * system.bsize < ROOM_BYTES) return undefined
  if ((await availableBytes()) < ROOM_BYTES) return undefined
  return join(MEMORY, `${PREFIX}${process.pid}`)
}

/** Removes what runs left behind that were killed. */
export async function sweepMemory(): Promise<void> {
  for (const name of await readdir(MEMORY).catch(() => [])) {
    const owner = name.startsWith(PREFIX) ? Number.parseInt(name.slice(PREFIX.length), 10) : Number.NaN
    if (Number.isNaN(owner) || isRunning(owner)) continue
    await rm(join(MEMORY, name), { recursive: true, force: true }).catch(() => undefined) // another user's
  }
}

/** What a tmpfs may hold says nothing about the memory that is there. */
async function availableBytes(): Promise<number> {
  const text = await readFile('/proc/meminfo', 'utf8').catch(() => '')
  return Number(/^MemAvailable:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1024
}
