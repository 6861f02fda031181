import type { Observer } from '../observe/worker-events.ts'
import { tellCrashed } from '../queue/report.ts'
import type { SuspectQuarantine, SuspectRunner } from '../queue/suspects.ts'
import type { Clock } from '../runtime/clock.ts'
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
}

/** What housekeeping is made of. */
export interface HousekeepingParts {
  readonly store: Pick<WorkerStore, 'recover' | 'advanceJoining' | 'takeUnmatched'>
  readonly subscriptions: readonly KeptSubscription[]
  readonly quarantine: SuspectQuarantine
  readonly workerId: string
  readonly everyMs: number
  readonly unmatched: 'report' | 'dead-letter'
  readonly clock: Clock
  readonly random: Random
  readonly observer: Observer
}

const JITTER = 0.2
const WHILE_JOINING_MS = 50
const UNMATCHED_EVERY_MS = 5_000
const UNMATCHED_AT_ONCE = 100

/**
 * What every worker does for all of them: lets new subscriptions join, returns what vanished workers left, runs
 * suspects alone, reports events that nobody takes. Any number of workers may do it at the same time.
 */
export class Housekeeping {
  readonly #parts: HousekeepingParts
  readonly #outage: Outage
  readonly #stop = new AbortController()
  #joined: () => void = () => {}
  #suspects: Promise<void> | null = null
  #unmatchedAtMs = Number.NEGATIVE_INFINITY
  /** Resolves when none of this worker's subscriptions is joining any more. */
  readonly active: Promise<void>

  constructor(parts: HousekeepingParts) {
    this.#parts = parts
    this.#outage = new Outage({
      random: parts.random,
      onBegin: (error) => this.#failed('housekeeping', error),
    })
    this.active = new Promise((resolve) => {
      this.#joined = resolve
    })
  }

  /** Runs until stopped. Never rejects. */
  async run(): Promise<void> {
    while (!this.#stop.signal.aborted) await this.#parts.clock.sleep(await this.#round(), this.#stop.signal)
    await this.#suspects
  }

  /** Ends the loop; a suspect that is running is waited for by `run`. */
  stop(): void {
    this.#stop.abort()
  }

  /** Does everything once. Returns the pause until the next round, in milliseconds. */
  async #round(): Promise<number> {
    const { everyMs, random } = this.#parts
    try {
      const isJoining = await this.#advanceJoining()
      await this.#recover()
      await this.#reportUnmatched()
      this.#outage.succeeded()
      return jittered(isJoining ? Math.min(WHILE_JOINING_MS, everyMs) : everyMs, JITTER, random)
    } catch (error) {
      return Math.max(this.#outage.failed(error), everyMs)
    }
  }

  async #advanceJoining(): Promise<boolean> {
    const { store, subscriptions } = this.#parts
    const joining = new Set(await store.advanceJoining())
    if (subscriptions.some(({ name }) => joining.has(name))) return true
    this.#joined()
    return false
  }

  async #recover(): Promise<void> {
    const { store, subscriptions } = this.#parts
    const ids = subscriptions.map(({ subscriptionId }) => subscriptionId)
    const report = await store.recover(ids, this.#parts.workerId)
    if (report.returned > 0) this.#tellRecovered(report)
    const suspected = subscriptions.filter(
      ({ subscriptionId }) => (report.suspects.get(subscriptionId) ?? 0) > 0,
    )
    if (suspected.length === 0 || this.#suspects !== null) return
    // Not awaited here: a suspect may take its time, and others may need what this loop does.
    this.#suspects = this.#runSuspects(suspected).finally(() => {
      this.#suspects = null
    })
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
    for (const { subscriptionId, name } of this.#parts.subscriptions) {
      const crashed = report.dead.filter(({ delivery }) => delivery.subscriptionId === subscriptionId)
      tellCrashed(this.#parts.observer, name, crashed)
      const dead = crashed.length
      const suspects = report.suspects.get(subscriptionId) ?? 0
      if (suspects + dead === 0) continue
      this.#parts.observer({ kind: 'recovered', subscription: name, count: suspects + dead, suspects, dead })
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

  #failed(during: string, error: unknown): void {
    this.#parts.observer({ kind: 'error', during, error, subscription: null })
  }
}
