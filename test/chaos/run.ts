import { mkdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { judge, type Verdict } from './checker/judge.ts'
import { sharedMs } from './clock.ts'
import { withoutEchoes } from './environment.ts'
import { type Evidence, evidenceOf } from './evidence.ts'
import type { PublisherMember, WorkerMember } from './fleet.ts'
import { type Journal, openJournal, readJournals } from './journal.ts'
import { isLate } from './late.ts'
import { strike, type Victims } from './nemesis.ts'
import { drawPlan, FAULT_NAMES, type FaultName, planText, type Step } from './plan.ts'
import { startChaosServer } from './server.ts'
import { diskMegabytes, migrate, PUBLISHERS, SCHEMA, victimsOf, WORKERS } from './setup.ts'
import { Watch } from './watch.ts'
import { comesToRest, inVain, within } from './within.ts'

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
  /** Publishing goes on beyond the nemesis until so many more events are known to be committed, however slow the machine is. */
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
  /** What of it found nothing to break: those are no faults, and excuse nothing. */
  readonly missed: readonly Step[]
  readonly verdict: Verdict
  /** Processes that ended by themselves, or did not do what they were told to. */
  readonly crashes: readonly string[]
  /** Of whatever is wrong: what was written down of it, and what the database knows. */
  readonly evidence: readonly Evidence[]
  readonly journals: string
}

/** A fault can be felt for one lease; what is handled after two is excused by none. */
const PEACE_LEASES = 2
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
    await run.peace()
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
  return { ok, seed, plan, missed: run.missed, verdict, crashes: run.crashes, evidence, journals }
}

class Run {
  readonly #options: ChaosOptions
  readonly #journal: Journal
  readonly #watch: Watch
  readonly #victims: Victims
  readonly missed: Step[] = []
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
    const { publishers } = this.#victims
    await this.#untilActive()
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
    const { quietMs } = this.#options
    await within(
      quietMs * PATIENCE_WITH_FAULTS,
      () => `over with ${[...this.#underWay].join(', ')}`,
      Promise.all(acts),
    )
  }

  /** Lets publishing go on when nothing is broken any more, so that there are events of which no fault excuses a repetition. */
  async peace(): Promise<void> {
    const { leastPublished, leaseMs } = this.#options
    await this.#untilActive()
    await sleep(PEACE_LEASES * leaseMs)
    const enough = this.#published + leastPublished
    await this.#until(`${leastPublished} events are published in peace`, () => this.#published >= enough)
  }

  /** Ends publishing, leaves no worker with old code, and waits until nothing waits any more. */
  async calm(): Promise<void> {
    await Promise.all(this.#victims.publishers.map((publisher) => publisher.stop()))
    for (const worker of this.#victims.workers) {
      if (worker.code === 'old') await worker.replace({ code: 'new' })
    }
    await this.#untilActive()
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
    const act = strike(this.#victims, this.#journal, step, (text) => this.#struck.push(text)).then(
      (hasStruck) => {
        this.#underWay.delete(step.id)
        if (!hasStruck) this.missed.push(step)
      },
    )
    act.catch(() => undefined)
    return act
  }

  /** A subscription that never is active is owed nothing, and a deploy that failed to add a type would pass. */
  async #untilActive(): Promise<void> {
    const { workers } = this.#victims
    const waiting = (): readonly string[] => workers.filter(({ isActive }) => !isActive).map(({ id }) => id)
    await this.#until(
      () => `the subscriptions of ${waiting().join(', ')} are active`,
      () => waiting().length === 0,
    )
  }

  async #until(what: string | (() => string), condition: () => boolean): Promise<void> {
    const { quietMs } = this.#options
    const deadline = sharedMs() + quietMs
    while (!condition()) {
      if (sharedMs() > deadline) throw new Error(inVain(quietMs, what))
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
