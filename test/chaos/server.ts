import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { Mutex } from '../../src/queue/mutex.ts'
import type { EmbeddedPostgres } from '../../src/testing/index.ts'
import { isRunning } from '../support/is-running.ts'
import { startOwnPostgres } from '../support/own-postgres.ts'

/** A server to be broken. */
export interface ChaosServer extends AsyncDisposable {
  readonly url: string
  /** Whether its disk is small enough to be filled. */
  readonly hasSmallDisk: boolean
  /**
   * Crashes it and brings it back; where the disk is too full for that, it comes back once the disk is free. Whether there was
   * one that ran.
   */
  restart(): Promise<boolean>
  /** Takes all that is left of its disk. Whether it has one that can be filled. */
  fillDisk(): Promise<boolean>
  /** Gives the disk back, and brings the server back if it did not survive. */
  freeDisk(): Promise<void>
}

const PREFIX = 'commitpost-chaos-'

/** Whether this process can give a server a small disk of its own. */
export function canMountSmallDisk(): boolean {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false
  try {
    unmount(mountSmallDisk(1))
    return true
  } catch {
    return false
  }
}

/** Starts a server; with a size, on a disk of so many megabytes in memory. */
export async function startChaosServer(diskMegabytes: number | null): Promise<ChaosServer> {
  sweepDisks()
  const disk = diskMegabytes === null ? null : mountSmallDisk(diskMegabytes)
  try {
    const postgres = await startOwnPostgres({
      ...(disk === null ? {} : { dataDir: join(disk, 'data') }),
      fsync: false, // memory, or a crash of the server alone: what was written is there
      settings: {
        max_connections: 150,
        synchronous_commit: 'on',
        min_wal_size: '32MB',
        max_wal_size: '64MB',
        shared_buffers: '64MB',
      },
    })
    return new Server(postgres, disk)
  } catch (error) {
    if (disk !== null) unmount(disk)
    throw error
  }
}

class Server implements ChaosServer {
  readonly #postgres: EmbeddedPostgres
  readonly #disk: string | null
  /** One fault may last into the next: two starts at once would be in each other's way. */
  readonly #restarts = new Mutex()
  /** A large disk takes seconds to fill, so the next fault may find it still full: a server cannot recover on it. */
  #isFull = false

  constructor(postgres: EmbeddedPostgres, disk: string | null) {
    this.#postgres = postgres
    this.#disk = disk
  }

  get url(): string {
    return this.#postgres.url
  }

  get hasSmallDisk(): boolean {
    return this.#disk !== null
  }

  async restart(): Promise<boolean> {
    const wasFull = this.#isFull
    let wasUp = false
    try {
      await this.#restarts.run(() => {
        wasUp = this.#postgres.pid !== undefined
        return this.#postgres.restart('immediate')
      })
    } catch (error) {
      if (!wasFull && !this.#isFull) throw error
    }
    return wasUp
  }

  async fillDisk(): Promise<boolean> {
    if (this.#disk === null) return false
    this.#isFull = true
    const ballast = await open(this.#ballast, 'w')
    try {
      const block = Buffer.alloc(16 << 20)
      while (statfsSync(this.#disk).bavail > 0) await ballast.write(block)
    } catch (error) {
      if (!isDiskFull(error)) throw error
    } finally {
      await ballast.close()
    }
    return true
  }

  async freeDisk(): Promise<void> {
    if (this.#disk === null) return
    await rm(this.#ballast, { force: true })
    this.#isFull = false
    while (!(await answers(this.url))) {
      // A server that cannot write its log gives up, and no one but us would start it again.
      await this.#restarts.run(async () => {
        if (this.#postgres.pid === undefined) await this.#postgres.restart('immediate')
      })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#postgres.stop('immediate')
    if (this.#disk !== null) unmount(this.#disk)
  }

  get #ballast(): string {
    return join(this.#disk ?? '', 'ballast')
  }
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 1_000,
    query_timeout: 1_000,
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => undefined)
  }
}

function mountSmallDisk(megabytes: number): string {
  const directory = mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`))
  chmodSync(directory, 0o755) // the server runs as another user
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=755`, 'tmpfs', directory], {
      stdio: 'pipe',
    })
    return directory
  } catch (error) {
    rmSync(directory, { recursive: true, force: true })
    throw error
  }
}

function unmount(directory: string): void {
  execFileSync('umount', ['-l', directory], { stdio: 'pipe' })
  rmSync(directory, { recursive: true, force: true })
}

/** Disks of runs that were killed. */
function sweepDisks(): void {
  for (const name of readdirSync(tmpdir())) {
    const owner = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1]
    if (owner === undefined || isRunning(Number(owner))) continue
    try {
      unmount(join(tmpdir(), name))
    } catch {
      rmSync(join(tmpdir(), name), { recursive: true, force: true })
    }
  }
}

function isDiskFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOSPC'
}
