import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { end, hasExited } from '../../../src/testing/postgres/server.ts'
import { startWatchdog, type Watchdog } from '../../../src/testing/postgres/watchdog.ts'
import { findProgram } from '../find-program.ts'
import { PATIENCE_MS } from '../patience-ms.ts'

/** A program of Java: its main class, what it is told, and where its classes are. */
export interface JavaProgram {
  readonly classpath: string
  readonly main: string
  readonly args: readonly string[]
  readonly heapMb: Readonly<Record<Jvm, number>>
  readonly jvm: Jvm
  /** What is added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>
}

/** `small` starts quickly beside much else; `full` is what Kafka's own scripts start, for measuring. */
export type Jvm = 'small' | 'full'

/** What can be done with every server. */
export interface ServerControl extends AsyncDisposable {
  /** Where its data and its log are. */
  readonly directory: string
  /** The process id of the server, another one after each restart; `undefined` while it is down. */
  readonly pid: number | undefined
  /** Ends the server for good and removes its data. */
  stop(): Promise<void>
  /** Kills the server with SIGKILL, as a crash would; `restart` brings it back with its data. */
  kill(): Promise<void>
  /** Stops the server as an operator would; `restart` brings it back with its data. */
  shutDown(): Promise<void>
  /** Stops the server, if it runs, and starts it again on the same port and data. */
  restart(): Promise<void>
}

const STOP_MS = 20_000

/** A Java server with a temporary directory of its own. Both go with this process, however it dies. */
export class JavaServer {
  readonly directory: string
  readonly #name: string
  readonly #watchdog: Watchdog = startWatchdog()
  #process: ChildProcess | undefined

  private constructor(name: string) {
    this.#name = name
    const suffix = randomBytes(6).toString('hex')
    this.directory = join(tmpdir(), `commitpost-${name.toLowerCase().replaceAll(' ', '-')}-${suffix}`)
  }

  static async create(name: string): Promise<JavaServer> {
    const server = new JavaServer(name)
    server.#guard(undefined)
    await mkdir(server.directory)
    return server
  }

  /** The process id of the server; `undefined` while it is down. */
  get pid(): number | undefined {
    return this.#process === undefined || hasExited(this.#process) ? undefined : this.#process.pid
  }

  /** Runs a program that ends by itself. */
  async run(program: JavaProgram): Promise<void> {
    const child = this.#spawn(program)
    await once(child, 'exit')
    if (child.exitCode !== 0) throw await this.failure(`${program.main} failed`)
  }

  /** Starts the server and waits until it answers. */
  async start(program: JavaProgram, answers: () => Promise<boolean>): Promise<void> {
    const child = this.#spawn(program)
    child.unref() // it does not keep this process alive; what waits for it does
    const deadline = performance.now() + PATIENCE_MS
    while (!(await answers())) {
      if (hasExited(child)) throw await this.failure(`${this.#name} ended while it was starting`)
      if (performance.now() > deadline) throw await this.failure(`${this.#name} does not answer`)
      await sleep(50)
    }
  }

  /** Ends the server: with SIGTERM and, if that takes too long, SIGKILL. Its directory stays. */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#process
    if (child !== undefined) {
      const force = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
      await end(child, signal).finally(() => clearTimeout(force))
    }
    this.#guard(undefined)
  }

  /** Ends the server for good and removes its directory. */
  async remove(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.end(signal)
    await this.#watchdog.release()
    await rm(this.directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
  }

  /** For whoever uses the server: `start` is how it is started again. */
  control(start: () => Promise<void>): ServerControl {
    const pid = (): number | undefined => this.pid
    const stop = (): Promise<void> => this.remove('SIGTERM')
    return {
      directory: this.directory,
      get pid() {
        return pid()
      },
      stop,
      kill: () => this.end('SIGKILL'),
      shutDown: () => this.end('SIGTERM'),
      restart: async () => {
        await this.end('SIGTERM')
        await start()
      },
      [Symbol.asyncDispose]: stop,
    }
  }

  /** An error with the end of what the server has written. */
  async failure(what: string): Promise<Error> {
    const log = await readFile(this.#logFile, 'utf8').catch(() => '')
    return new Error(`${what}:\n${log.trim().split('\n').slice(-25).join('\n')}`)
  }

  get #logFile(): string {
    return join(this.directory, 'server.log')
  }

  #spawn({ classpath, main, args, heapMb, jvm, env }: JavaProgram): ChildProcess {
    const log = openSync(this.#logFile, 'a') // not a pipe: a dead parent must not break the server
    try {
      const flags = [`-Xmx${heapMb[jvm]}m`, ...JVM_FLAGS[jvm], ...LOGGING, '-cp', classpath, main, ...args]
      const child = spawn(findProgram('java') ?? 'java', flags, {
        cwd: this.directory,
        // A session of its own: Ctrl-C in the terminal must not stop the server before its clients.
        detached: true,
        stdio: ['ignore', log, log],
        env: { ...process.env, ...env },
      })
      child.on('error', () => undefined) // seen as a process that has ended
      this.#process = child
      this.#guard(child.pid)
      return child
    } finally {
      closeSync(log)
    }
  }

  #guard(pid: number | undefined): void {
    this.#watchdog.guard({ pid, signal: 'SIGKILL', remove: [this.directory] })
  }
}

const JVM_FLAGS: Readonly<Record<Jvm, readonly string[]>> = {
  small: ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'],
  full: ['-server', '-XX:+UseG1GC', '-XX:MaxGCPauseMillis=20', '-XX:InitiatingHeapOccupancyPercent=35'],
}

/** The log is of slf4j-simple. */
const LOGGING = [
  '-Djava.awt.headless=true',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
  '-Dorg.slf4j.simpleLogger.showDateTime=true',
]
