import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import type { ChaosLine, ChaosPublisherConfig, ChaosWorkerConfig } from './config.ts'
import type { Journal } from './journal.ts'
import { isOver } from './within.ts'

/** What all members of a run have in common. */
export interface FleetParts {
  /** Where the compiled programs are. */
  readonly programs: string
  readonly databaseUrl: string
  readonly schema: string
  readonly journals: string
  readonly journal: Journal
  readonly leaseMs: number
  readonly seed: number
  /** The library that fakes the clock of a process, where there is one. */
  readonly faketime: string | null
  /** How long a process may take to end in peace. */
  readonly patienceMs: number
}

/** How a worker is started. */
export interface WorkerStart {
  readonly code: 'old' | 'new'
  readonly skewMs: number
}

/** A place for a process that is started again whenever it was killed, behind a proxy of its own. */
abstract class Member {
  readonly proxy: FaultProxy
  protected readonly parts: FleetParts
  readonly #name: string
  #process: ChildProcess | null = null
  #ended: Promise<void> = Promise.resolve()
  #turn: Promise<unknown> = Promise.resolve()
  #incarnation = 0
  #earlier = 0
  #told: ChaosLine = { count: 0 }
  /** Ends that nobody asked for, and what they were asked for in vain. */
  readonly unexpected: string[] = []
  #isEnding = false

  constructor(name: string, proxy: FaultProxy, parts: FleetParts) {
    this.#name = name
    this.proxy = proxy
    this.parts = parts
  }

  /** The name of the process that runs now. */
  get id(): string {
    return `${this.#name}.${this.#incarnation}`
  }

  /** What its processes have told so far. */
  get count(): number {
    return this.#earlier + this.#told.count
  }

  /** Whether the process that runs now has told that its subscriptions are active. */
  get isActive(): boolean {
    return this.#told.isActive === true
  }

  protected launch(program: string, config: (id: string) => object, env: NodeJS.ProcessEnv = {}): void {
    this.#incarnation += 1
    this.#earlier += this.#told.count
    this.#told = { count: 0 }
    this.#isEnding = false
    const { id } = this
    const { programs, journals, journal } = this.parts
    const errors = openSync(join(journals, 'errors.log'), 'a')
    const file = join(programs, 'test', 'programs', `${program}.js`)
    const child = spawn(process.execPath, [file, JSON.stringify(config(id))], {
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', errors],
    })
    closeSync(errors)
    this.#process = child
    const lines = createInterface({ input: child.stdout as NonNullable<typeof child.stdout> })
    lines.on('line', (line) => {
      if (this.#process === child) this.#told = JSON.parse(line) as ChaosLine
    })
    this.#ended = once(child, 'exit').then(([code, signal]) => {
      journal.write({ kind: 'died', worker: id })
      if (this.#isEnding && (code === 0 || signal !== null)) return
      this.unexpected.push(`${id} ended by itself: code ${String(code)}, signal ${String(signal)}`)
    })
  }

  /** Does something to the process that must not meet with anything else that is done to it. */
  alone<Result>(act: () => Promise<Result>): Promise<Result> {
    const turn = this.#turn.then(act)
    this.#turn = turn.catch(() => undefined)
    return turn
  }

  /** Whether there is a process to which it was sent. */
  signal(signal: NodeJS.Signals): boolean {
    return this.#process?.kill(signal) ?? false
  }

  /** Kills the process and waits for its end. */
  async kill(): Promise<void> {
    this.#isEnding = true
    this.signal('SIGKILL')
    await this.#ended
  }

  /** Ends the process in peace. One that does not stop when it is told to is killed; that is written down as a crash. */
  async stop(): Promise<void> {
    this.#isEnding = true
    this.signal('SIGTERM')
    const { patienceMs } = this.parts
    if (await isOver(this.#ended, patienceMs)) return
    this.unexpected.push(`${this.id} did not stop within ${patienceMs} ms`)
    await this.kill()
  }
}

/** The processes of one worker, one after the other. */
export class WorkerMember extends Member {
  #start: WorkerStart = { code: 'old', skewMs: 0 }

  /** Which code it runs. */
  get code(): 'old' | 'new' {
    return this.#start.code
  }

  start(start: Partial<WorkerStart> = {}): void {
    this.#start = { ...this.#start, ...start }
    const { databaseUrl, schema, journals, leaseMs, faketime } = this.parts
    const { code, skewMs } = this.#start
    const isFaked = faketime !== null && skewMs !== 0
    const config = (id: string): ChaosWorkerConfig => ({
      id,
      url: this.proxy.urlOf(databaseUrl),
      schema,
      journals,
      leaseMs,
      code,
      skewMs: isFaked ? 0 : skewMs,
    })
    this.launch('chaos-worker', config, isFaked ? fakedClock(faketime, skewMs) : {})
  }

  /** Ends the process in peace and starts another one. */
  async replace(start: Partial<WorkerStart> = {}): Promise<void> {
    await this.alone(async () => {
      await this.stop()
      this.start(start)
    })
  }
}

/** The processes of one publisher, one after the other. */
export class PublisherMember extends Member {
  #starts = 0

  start(): void {
    this.#starts += 1
    const { databaseUrl, schema, journals, leaseMs, seed } = this.parts
    const config = (id: string): ChaosPublisherConfig => ({
      id,
      url: this.proxy.urlOf(databaseUrl),
      schema,
      journals,
      seed: seed * 1_000 + this.#starts * 100 + id.charCodeAt(1),
      timeoutMs: leaseMs,
    })
    this.launch('chaos-publisher', config)
  }
}

/** Durations stay true: only the time of day is wrong. */
function fakedClock(library: string, skewMs: number): NodeJS.ProcessEnv {
  const seconds = Math.round(skewMs / 1_000)
  return {
    LD_PRELOAD: library,
    FAKETIME: `${seconds < 0 ? '' : '+'}${seconds}s`,
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    DONT_FAKE_MONOTONIC: '1',
  }
}

/** Makes a place for a worker. Nothing runs in it yet. */
export async function workerMember(name: string, parts: FleetParts): Promise<WorkerMember> {
  return new WorkerMember(name, await startFaultProxy(parts.databaseUrl), parts)
}

/** Makes a place for a publisher. Nothing runs in it yet. */
export async function publisherMember(name: string, parts: FleetParts): Promise<PublisherMember> {
  return new PublisherMember(name, await startFaultProxy(parts.databaseUrl), parts)
}
