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
import { isLate } from './late.ts'
import { strike, type Victims } from './nemesis.ts'
import { drawPlan, FAULT_NAMES, type FaultName, planText, type Step } from './plan.ts'
import { type ChaosServer, startChaosServer } from './server.ts'
import { prepareWatch, Watch } from './watch.ts'
import { comesToRest, within } from './within.ts'

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
  /** How long nothing may become less before all is at rest, and how long each process may take to begin and to end. */
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
/** A fault that replaces workers may have to wait for each of them to end, and others wait for it. */
const PATIENCE_WITH_FAULTS = 10
const TICK_MS = 250

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
  await using watch = new Watch(server.url, SCHEMA, journal, leaseMs, options.quietMs)
  const run = new Run(options, journal, watch, await victimsOf(options, journal, server))
  try {
    await run.begin()
    await run.suffer(plan)
    await run.calm()
  } catch (error) {
    // What went wrong first is what is told.
    await run.end().catch(() => undefined)
    throw error
  }
  await run.end()
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
  await prepareWatch(pool)
  await pool.end()
}

async function victimsOf(options: ChaosOptions, journal: Journal, server: ChaosServer): Promise<Victims> {
  const { programs, journals, leaseMs, seed, faketime, quietMs } = options
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
    patienceMs: quietMs,
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
  readonly #underWay = new Set<string>()
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
    const { workers, publishers } = this.#victims
    await this.#until('all subscriptions are active', () => workers.every(({ isActive }) => isActive))
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
      acts.push(this.#strike(step))
    }
    await sleep(Math.max(0, begunAt + this.#options.durationMs - sharedMs()))
    const { leastPublished, quietMs } = this.#options
    await within(
      quietMs * PATIENCE_WITH_FAULTS,
      () => `over with ${[...this.#underWay].join(', ')}`,
      Promise.all(acts),
    )
    await this.#until(`${leastPublished} events are published`, () => this.#published >= leastPublished)
  }

  /** Ends publishing, leaves no worker with old code, and waits until nothing waits any more. */
  async calm(): Promise<void> {
    await Promise.all(this.#victims.publishers.map((publisher) => publisher.stop()))
    for (const worker of this.#victims.workers) {
      if (worker.code === 'old') await worker.replace({ code: 'new' })
    }
    this.#waiting = null
    const { quietMs } = this.#options
    if (await comesToRest(() => this.#waiting, quietMs)) return
    const lines = [
      `not at rest: nothing has become less for ${quietMs} ms`,
      ...(await this.#watch.standstill()),
    ]
    this.#options.onLine(lines.join('\n  '))
  }

  /** Ends everything, in peace where that is possible, and writes down what is left. */
  async end(): Promise<void> {
    await Promise.all(this.#victims.workers.map((worker) => worker.stop()))
    await Promise.all(this.#victims.publishers.map((publisher) => publisher.kill()))
    this.#ended.abort()
    await this.#ticking
    await this.#watch.noteLeft()
    const closed = Promise.all(this.#members.map(({ proxy }) => proxy.close()))
    await within(this.#options.quietMs, 'the proxies close', closed)
  }

  /** Whatever goes wrong is thrown by whoever waits for it, at the end, and not by nobody. */
  #strike(step: Step): Promise<void> {
    this.#underWay.add(step.id)
    const act = strike(this.#victims, this.#journal, step, (text) => this.#struck.push(text))
    act.then(
      () => this.#underWay.delete(step.id),
      () => undefined,
    )
    return act
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
      await this.#pause(`stall-${n}`)
    }
  }

  /** All proxies are in this process: when it stands still, everybody does. */
  async #pause(id: string): Promise<void> {
    const at = sharedMs()
    await sleep(TICK_MS, undefined, { signal: this.#ended.signal }).catch(() => undefined)
    const until = sharedMs()
    if (!isLate(until - at - TICK_MS, this.#options.leaseMs)) return
    this.#journal.writeAt({ kind: 'fault', at, until, id, name: 'stall', workers: null })
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
