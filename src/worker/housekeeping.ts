import type { Observer } from '../observe/worker-events.ts'
import { tellCrashed } from '../queue/report.ts'
import type { SuspectQuarantine, SuspectRunner } from '../queue/suspects.ts'
import type { Clock } from '../runtime/clock.ts'
import { CommitpostError } from '../runtime/errors.ts'
import { Outage } from '../runtime/outage.ts'
import { jittered } from '../runtime/periodic.ts'
import type { Random } from '../runtime/random.ts'
import type { RecoverReport } from '../store/queue-store.ts'
import type { WorkerStore } from '../store/store.ts'

/** A subscription to look after. */
export interface KeptSubscription extends SuspectRunner {
  readonly subscriptionId: number
  readonly name: string
  wake(): void
  /** Claims no more. Never rejects. */
  stop(): Promise<void>
}

/** What housekeeping is made of. */
export interface HousekeepingParts {
  readonly store: Pick<
    WorkerStore,
    'recover' | 'advanceJoining' | 'openTransaction' | 'takeUnmatched' | 'forgetWorkers' | 'tendPartitions'
  >
  readonly subscriptions: readonly KeptSubscription[]
  readonly quarantine: SuspectQuarantine
  readonly workerId: string
  readonly everyMs: number
  readonly unmatched: 'report' | 'dead-letter'
  /** Does what the policies of the subscriptions say. */
  readonly redriver: { redrive(): Promise<void> }
  /** Lets go what retention policies name; null where there are none. */
  readonly retention: { look(): void; stop(): Promise<void> } | null
  readonly clock: Clock
  readonly random: Random
  readonly observer: Observer
}

const JITTER = 0.2
const WHILE_JOINING_MS = 50
/** Joining takes as long as the longest transaction under way: after this time somebody may want to know which. */
const JOINING_PATIENCE_MS = 5_000
const UNMATCHED_EVERY_MS = 5_000
const UNMATCHED_AT_ONCE = 100
const FORGET_EVERY_MS = 3_600_000
/** When a period begins, positions follow within seconds. */
const PARTITIONS_EVERY_MS = 5_000

/**
 * What every worker does for all of them: lets new subscriptions join, returns what vanished workers left, runs
 * suspects apart, reports events that nobody takes, re-drives what policies name, carries retention out, makes partitions
 * ahead, forgets workers that vanished long ago.
 * Any number of workers may do it at the same time. What fails of it keeps nothing else from being done.
 */
export class Housekeeping {
  readonly #parts: HousekeepingParts
  readonly #chores: readonly Chore[]
  readonly #stop = new AbortController()
  #joined: () => void = () => {}
  #notJoined: (reason: CommitpostError) => void = () => {}
  #askWhyAtMs: number | null = null
  #toldPid: number | null | undefined
  #suspects: Promise<void> | null = null
  #unmatchedAtMs = Number.NEGATIVE_INFINITY
  #forgotAtMs = Number.NEGATIVE_INFINITY
  #tendedAtMs = Number.NEGATIVE_INFINITY
  #isJoining = true
  #served: readonly KeptSubscription[]
  /** Resolves when none of this worker's subscriptions is joining any more. */
  readonly active: Promise<void>

  constructor(parts: HousekeepingParts) {
    this.#parts = parts
    this.#served = parts.subscriptions
    this.#chores = [
      this.#chore('joining', () => this.#advanceJoining()),
      this.#chore('recovery', () => this.#recover()),
      this.#chore('unmatched', () => this.#reportUnmatched()),
      this.#chore('re-driving', () => this.#parts.redriver.redrive()),
      this.#chore('forgetting workers', () => this.#forgetWorkers()),
      this.#chore('partitions', () => this.#tendPartitions()),
      this.#chore('retention', async () => this.#parts.retention?.look()),
    ]
    this.active = new Promise((resolve, reject) => {
      this.#joined = resolve
      this.#notJoined = reject
    })
    // Nobody may be waiting for it.
    this.active.catch(() => {})
  }

  /** Runs until stopped. Never rejects. */
  async run(): Promise<void> {
    while (!this.#stop.signal.aborted) await this.#parts.clock.sleep(await this.#round(), this.#stop.signal)
    await this.#parts.retention?.stop()
    await this.#suspects
  }

  /** Ends the loop; a suspect that is running is waited for by `run`. */
  stop(): void {
    this.#stop.abort()
    this.#notJoined(
      new CommitpostError(
        'INVALID_STATE',
        'The worker was stopped before all its subscriptions had joined. They go on joining when a worker runs again.',
      ),
    )
  }

  /** Does everything once. Returns the pause until the next round, in milliseconds. */
  async #round(): Promise<number> {
    const { everyMs, random } = this.#parts
    let failedMs: number | null = null
    for (const chore of this.#chores) {
      const pauseMs = await attempt(chore)
      if (pauseMs !== null) failedMs = Math.max(pauseMs, failedMs ?? everyMs)
    }
    if (failedMs !== null) return failedMs
    return jittered(this.#isJoining ? Math.min(WHILE_JOINING_MS, everyMs) : everyMs, JITTER, random)
  }

  #chore(name: string, work: () => Promise<void>): Chore {
    const onBegin = (error: unknown): void => this.#failed(name, error)
    return { work, outage: new Outage({ random: this.#parts.random, onBegin }) }
  }

  async #advanceJoining(): Promise<void> {
    const { store, subscriptions } = this.#parts
    const joining = new Set(await store.advanceJoining())
    const own = subscriptions.map(({ name }) => name).filter((name) => joining.has(name))
    this.#isJoining = own.length > 0
    if (this.#isJoining) return this.#tellWhatItWaitsFor(own)
    this.#askWhyAtMs = null
    this.#toldPid = undefined
    this.#joined()
  }

  async #tellWhatItWaitsFor(joining: readonly string[]): Promise<void> {
    const { store, clock, observer } = this.#parts
    const nowMs = clock.monotonicMs()
    this.#askWhyAtMs ??= nowMs + JOINING_PATIENCE_MS
    if (nowMs < this.#askWhyAtMs) return
    this.#askWhyAtMs = nowMs + JOINING_PATIENCE_MS
    const waitsFor = await store.openTransaction()
    // Once for each that stands in the way.
    if (waitsFor === null || waitsFor.pid === this.#toldPid) return
    this.#toldPid = waitsFor.pid
    observer({ kind: 'joiningWaits', subscriptions: joining, waitsFor })
  }

  async #recover(): Promise<void> {
    const ids = this.#served.map(({ subscriptionId }) => subscriptionId)
    const { store, workerId } = this.#parts
    const [all] = await Promise.allSettled([store.recover(ids, workerId)])
    if (all.status === 'fulfilled') return this.#recovered(all.value)
    // A row that the database refuses, by a trigger of the user's own, must not keep other subscriptions waiting.
    if (ids.length > 1) this.#recovered(merged(await this.#recoverEach(ids)))
    throw all.reason
  }

  async #recoverEach(ids: readonly number[]): Promise<readonly RecoverReport[]> {
    const { store, workerId } = this.#parts
    const reports: RecoverReport[] = []
    for (const id of ids) {
      const [one] = await Promise.allSettled([store.recover([id], workerId)])
      if (one.status === 'fulfilled') reports.push(one.value)
    }
    return reports
  }

  #recovered(report: RecoverReport): void {
    if (report.returned.size > 0) this.#tellRecovered(report)
    if (report.retired.size > 0) this.#stopServing(report.retired)
    const suspected = this.#served.filter(
      ({ subscriptionId }) => (report.suspects.get(subscriptionId) ?? 0) > 0,
    )
    if (suspected.length === 0 || this.#suspects !== null) return
    // Not awaited here: a suspect may take its time, and others may need what this loop does.
    this.#suspects = this.#runSuspects(suspected).finally(() => {
      this.#suspects = null
    })
  }

  #stopServing(retired: RecoverReport['retired']): void {
    for (const subscription of this.#served) {
      const retiredBy = retired.get(subscription.subscriptionId)
      if (retiredBy === undefined) continue
      this.#parts.observer({ kind: 'retired', subscription: subscription.name, retiredBy })
      void subscription.stop()
    }
    this.#served = this.#served.filter(({ subscriptionId }) => !retired.has(subscriptionId))
  }

  async #runSuspects(runners: readonly KeptSubscription[]): Promise<void> {
    for (const runner of runners) {
      try {
        await this.#parts.quarantine.runAll(runner, this.#stop.signal)
        // What waited behind a suspect, or was held back by it, may go on.
        runner.wake()
      } catch (error) {
        this.#failed('suspect', error)
      }
    }
  }

  #tellRecovered(report: RecoverReport): void {
    for (const { subscriptionId, name } of this.#served) {
      const crashed = report.dead.filter(({ delivery }) => delivery.subscriptionId === subscriptionId)
      tellCrashed(this.#parts.observer, name, crashed)
      const dead = crashed.length
      const count = report.returned.get(subscriptionId) ?? 0
      if (count === 0) continue
      this.#parts.observer({ kind: 'recovered', subscription: name, count, suspects: count - dead, dead })
    }
  }

  async #reportUnmatched(): Promise<void> {
    const { store, clock, observer, unmatched } = this.#parts
    const nowMs = clock.monotonicMs()
    if (nowMs - this.#unmatchedAtMs < UNMATCHED_EVERY_MS) return
    const events = await store.takeUnmatched(UNMATCHED_AT_ONCE, unmatched === 'dead-letter')
    for (const event of events) observer({ kind: 'unmatched', event })
    // A full page means that there are more: they are looked for in the next round.
    if (events.length < UNMATCHED_AT_ONCE) this.#unmatchedAtMs = nowMs
  }

  async #forgetWorkers(): Promise<void> {
    const nowMs = this.#parts.clock.monotonicMs()
    if (nowMs - this.#forgotAtMs < FORGET_EVERY_MS) return
    await this.#parts.store.forgetWorkers()
    this.#forgotAtMs = nowMs
  }

  async #tendPartitions(): Promise<void> {
    const nowMs = this.#parts.clock.monotonicMs()
    if (nowMs - this.#tendedAtMs < PARTITIONS_EVERY_MS) return
    await this.#parts.store.tendPartitions()
    this.#tendedAtMs = nowMs
  }

  #failed(during: string, error: unknown): void {
    this.#parts.observer({ kind: 'error', during, error, subscription: null })
  }
}

interface Chore {
  readonly work: () => Promise<void>
  readonly outage: Outage
}

/** Null if it was done, otherwise how long to wait before it is tried again, in milliseconds. */
async function attempt({ work, outage }: Chore): Promise<number | null> {
  try {
    await work()
    outage.succeeded()
    return null
  } catch (error) {
    return outage.failed(error)
  }
}

/** Of different subscriptions each. */
function merged(reports: readonly RecoverReport[]): RecoverReport {
  return {
    returned: new Map(reports.flatMap(({ returned }) => [...returned])),
    dead: reports.flatMap(({ dead }) => dead),
    suspects: new Map(reports.flatMap(({ suspects }) => [...suspects])),
    retired: new Map(reports.flatMap(({ retired }) => [...retired])),
  }
}
