import { mkdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { migrateUp } from '../../src/store/postgres/index.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { judge, type Verdict } from './checker/judge.ts'
import { sharedMs } from './clock.ts'
import { withoutEchoes } from './environment.ts'
import { type Evidence, evidenceOf } from './evidence.ts'
import {
  type FleetParts,
  type PublisherMember,
  publisherMember,
  type WorkerMember,
  workerMember,
} from './fleet.ts'
import { type Journal, openJournal, readJournals } from './journal.ts'
import { strike, type Victims } from './nemesis.ts'
import { drawPlan, FAULT_NAMES, type FaultName, planText, type Step } from './plan.ts'
import { type ChaosServer, startChaosServer } from './server.ts'
import { Watch } from './watch.ts'

/** What a run is made of. */
export interface ChaosOptions {
  readonly seed: number
  /** How long the nemesis is at work. */
  readonly durationMs: number
  readonly leaseMs: number
  /** Where the compiled programs are. */
  readonly programs: string
  /** An empty directory for the journals. */
  readonly journals: string
  /** Whether the server gets a disk that can be filled. */
  readonly smallDisk: boolean
  /** The library that fakes the clock of a process; null hands a wrong clock to the library instead. */
  readonly faketime: string | null
  /** How long deliveries may take after a fault; null only reports it. */
  readonly recoveryBarMs: number | null
  /** Publishing goes on beyond the nemesis until so many events are known to be committed, however slow the machine is. */
  readonly leastPublished: number
  /** How long everything may take to come to rest. */
  readonly quietMs: number
  /** @default all that can be done here */
  readonly faults?: readonly FaultName[]
  /** Told of each act of the nemesis, and every second how far the run is. */
  readonly onLine: (line: string) => void
}

/** What came of a run. */
export interface ChaosReport {
  readonly ok: boolean
  readonly seed: number
  readonly plan: readonly Step[]
  readonly verdict: Verdict
  /** Processes that ended by themselves. */
  readonly crashes: readonly string[]
  /** Of whatever is wrong: what was written down of it, and what the database knows. */
  readonly evidence: readonly Evidence[]
  readonly journals: string
}

const SCHEMA = 'chaos'
const WORKERS = 4
const PUBLISHERS = 3

/** Runs publishers, workers and a nemesis in processes of their own, and judges what they wrote down. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, durationMs, leaseMs, journals, smallDisk } = options
  const faults = (options.faults ?? FAULT_NAMES).filter((name) => smallDisk || name !== 'fillDisk')
  const plan = drawPlan({ seed, durationMs, leaseMs, workers: WORKERS, publishers: PUBLISHERS, faults })
  options.onLine(planText(seed, plan))
  mkdirSync(journals, { recursive: true })
  const journal = openJournal(journals, 'nemesis')
  await using server = await startChaosServer(smallDisk ? diskMegabytes(durationMs) : null)
  await migrate(server)
  await using watch = new Watch(server.url, SCHEMA, journal, leaseMs)
  const run = new Run(options, journal, watch, await victimsOf(options, journal, server))
  try {
    await run.begin()
    await run.suffer(plan)
    await run.calm()
  } finally {
    await run.end()
  }
  const entries = withoutEchoes(readJournals(journals))
  const verdict = judge(entries, { leaseMs, recoveryBarMs: options.recoveryBarMs })
  const evidence = await evidenceOf(verdict, entries, (eventId) => watch.rowsOf(eventId))
  journal.close()
  const ok = verdict.ok && run.crashes.length === 0
  return { ok, seed, plan, verdict, crashes: run.crashes, evidence, journals }
}

/** Small enough to be filled in a moment, with room for what the run writes. */
function diskMegabytes(durationMs: number): number {
  return 256 + Math.ceil(durationMs / 60_000) * 40
}

async function migrate(server: ChaosServer): Promise<void> {
  const pool = sturdyPool({ connectionString: server.url })
  await migrateUp(pool, { schema: SCHEMA })
  await pool.end()
}

async function victimsOf(options: ChaosOptions, journal: Journal, server: ChaosServer): Promise<Victims> {
  const { programs, journals, leaseMs, seed, faketime } = options
  const databaseUrl = server.url
  const parts: FleetParts = {
    programs,
    databaseUrl,
    schema: SCHEMA,
    journals,
    journal,
    leaseMs,
    seed,
    faketime,
  }
  const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n)
  return {
    server,
    schema: SCHEMA,
    workers: await Promise.all(numbers(WORKERS).map((n) => workerMember(`w${n}`, parts))),
    publishers: await Promise.all(numbers(PUBLISHERS).map((n) => publisherMember(`p${n}`, parts))),
  }
}

class Run {
  readonly #options: ChaosOptions
  readonly #journal: Journal
  readonly #watch: Watch
  readonly #victims: Victims
  readonly #struck: string[] = []
  readonly #ended = new AbortController()
  readonly #startedAt = sharedMs()
  #waiting: number | null = null
  #ticking: Promise<void> = Promise.resolve()

  constructor(options: ChaosOptions, journal: Journal, watch: Watch, victims: Victims) {
    this.#options = options
    this.#journal = journal
    this.#watch = watch
    this.#victims = victims
  }

  get crashes(): readonly string[] {
    return this.#members.flatMap(({ unexpected }) => unexpected)
  }

  get #members(): readonly (WorkerMember | PublisherMember)[] {
    return [...this.#victims.workers, ...this.#victims.publishers]
  }

  get #published(): number {
    return this.#victims.publishers.reduce((sum, { count }) => sum + count, 0)
  }

  /** Starts the workers, the publishers once every subscription is served, and waits until each has published. */
  async begin(): Promise<void> {
    for (const worker of this.#victims.workers) worker.start()
    this.#ticking = this.#tick()
    await this.#until('all subscriptions are active', () => this.#watch.isComplete)
    const { publishers } = this.#victims
    for (const publisher of publishers) publisher.start()
    // A process takes its time to start: what is broken before that is broken in vain.
    await this.#until('all publishers publish', () => publishers.every(({ count }) => count > 0))
  }

  /** Lets the nemesis go through its plan, each act at its time and beside those that still last. */
  async suffer(plan: readonly Step[]): Promise<void> {
    const begunAt = sharedMs()
    const acts: Promise<void>[] = []
    for (const step of plan) {
      await sleep(Math.max(0, begunAt + step.atMs - sharedMs()))
      acts.push(strike(this.#victims, this.#journal, step, (text) => this.#struck.push(text)))
    }
    await sleep(Math.max(0, begunAt + this.#options.durationMs - sharedMs()))
    await Promise.all(acts)
    const { leastPublished } = this.#options
    await this.#until(`${leastPublished} events are published`, () => this.#published >= leastPublished)
  }

  /** Ends publishing, leaves no worker with old code, and waits until nothing waits any more. */
  async calm(): Promise<void> {
    await Promise.all(this.#victims.publishers.map((publisher) => publisher.end('SIGTERM')))
    for (const worker of this.#victims.workers) {
      if (worker.code === 'old') await worker.replace({ code: 'new' })
    }
    this.#waiting = null
    const isQuiet = await this.#until('nothing waits', () => this.#waiting === 0).then(
      () => true,
      () => false,
    )
    if (!isQuiet) this.#options.onLine(`not at rest after ${this.#options.quietMs} ms`)
  }

  /** Ends everything, in peace where that is possible, and writes down what is left. */
  async end(): Promise<void> {
    await Promise.all(this.#victims.workers.map((worker) => endWithin(worker, this.#options.quietMs)))
    await Promise.all(this.#victims.publishers.map((publisher) => publisher.end('SIGKILL')))
    this.#ended.abort()
    await this.#ticking
    await this.#watch.noteLeft()
    await Promise.all(this.#members.map(({ proxy }) => proxy.close()))
  }

  async #until(what: string, condition: () => boolean): Promise<void> {
    const deadline = sharedMs() + this.#options.quietMs
    while (!condition()) {
      if (sharedMs() > deadline) throw new Error(`Waited ${this.#options.quietMs} ms in vain: ${what}`)
      await sleep(50)
    }
  }

  async #tick(): Promise<void> {
    for (let n = 0; !this.#ended.signal.aborted; n += 1) {
      this.#waiting = await this.#watch.waiting()
      if (n % 4 === 0) this.#tell()
      await sleep(250, undefined, { signal: this.#ended.signal }).catch(() => undefined)
    }
  }

  #tell(): void {
    const seconds = Math.round((sharedMs() - this.#startedAt) / 1_000)
    const handled = this.#victims.workers.reduce((sum, { count }) => sum + count, 0)
    const struck = this.#struck.splice(0).join(', ')
    this.#options.onLine(
      `${String(seconds).padStart(4)} s  published ${this.#published}  handled ${handled}  waiting ${this.#waiting ?? '?'}` +
        (struck === '' ? '' : `  <- ${struck}`),
    )
  }
}

/** A worker that does not stop when it is told to is killed; that is written down as a crash. */
async function endWithin(worker: WorkerMember, patienceMs: number): Promise<void> {
  const patience = new AbortController()
  const late = sleep(patienceMs, undefined, { signal: patience.signal }).then(
    () => {
      worker.unexpected.push(`${worker.id} did not stop within ${patienceMs} ms`)
      worker.signal('SIGKILL')
    },
    () => undefined,
  )
  await worker.end('SIGTERM')
  patience.abort()
  await late
}
