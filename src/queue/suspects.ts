import { linkSignals } from '../runtime/abort.ts'
import type { Clock } from '../runtime/clock.ts'
import type { SoloGate } from '../runtime/gate.ts'

/** Somebody who can run suspects: a runner. */
export interface SuspectRunner {
  /** Claims at most so many suspects and runs them together. False when there was none. */
  runSuspects(most: number): Promise<boolean>
}

const FIRST_PATIENCE_MS = 5_000
const LONGEST_PATIENCE_MS = 600_000
/** Nothing starts while a suspect waits to be alone. Before it waits again, work goes on for so many times as long. */
const REST_PER_WAIT = 4
/** To be alone costs waiting for every running handler: whoever is goes on with the next suspects, for so long. */
const LONGEST_SERIES_MS = 250
const LARGEST_GROUP = 64

/**
 * Runs suspects, deliveries whose last holder vanished, with nothing ordinary beside them, in groups that grow while
 * nothing happens: the first of a subscription alone, then 2, 4, 8 … together. One at a time they would pile up for ever
 * where workers are killed faster than that.
 *
 * Only a crash under a suspect that ran alone is charged to it. One that kills its process is alone soon: suspects are
 * claimed oldest first, so those of the group that crashed are the first that the next process takes, and it begins with
 * 1 again. Of n it takes the last half together at most, so that after log2(n) crashes, six for the largest group, the
 * one that did it is alone. Processes that have not crashed yet and take large groups add one crash each.
 */
export class SuspectQuarantine {
  readonly #gate: SoloGate
  readonly #clock: Clock
  /** While a suspect waits for running handlers nothing new starts, so it gives up in time and waits longer next. */
  #patienceMs = FIRST_PATIENCE_MS
  #restsUntilMs = Number.NEGATIVE_INFINITY
  /**
   * Of each subscription by itself: one that is busy has suspects after every crash, and if theirs let the groups of
   * another grow, the one of that other that kills the process would never be alone.
   */
  readonly #groupSizes = new WeakMap<SuspectRunner, number>()

  constructor(gate: SoloGate, clock: Clock) {
    this.#gate = gate
    this.#clock = clock
  }

  /** Runs the suspects of a runner that are due, others in between having their turn. Rejects if a claim fails. */
  async runAll(runner: SuspectRunner, stop: AbortSignal): Promise<void> {
    while (!stop.aborted && this.#clock.monotonicMs() >= this.#restsUntilMs) {
      const leave = await this.#enterAlone(stop)
      if (leave === null) return
      try {
        if (!(await this.#runSeries(runner, stop))) return
      } finally {
        leave()
      }
    }
  }

  /** One group after the other. False when there are no more. */
  async #runSeries(runner: SuspectRunner, stop: AbortSignal): Promise<boolean> {
    const endMs = this.#clock.monotonicMs() + LONGEST_SERIES_MS
    do {
      const size = this.#groupSizes.get(runner) ?? 1
      if (!(await runner.runSuspects(size))) {
        // The next suspects are of another crash, and nothing is known of them.
        this.#groupSizes.delete(runner)
        return false
      }
      // All have ended. That a handler failed is no crash.
      this.#groupSizes.set(runner, Math.min(size * 2, LARGEST_GROUP))
    } while (!stop.aborted && this.#clock.monotonicMs() < endMs)
    return true
  }

  async #enterAlone(stop: AbortSignal): Promise<(() => void) | null> {
    const patience = linkSignals(stop)
    const entered = new AbortController()
    const timeIsUp = this.#clock.sleep(this.#patienceMs, entered.signal).then(() => patience.abort())
    const leave = await this.#gate.exclusive(patience.signal)
    entered.abort()
    patience.unlink()
    await timeIsUp
    if (leave === null) this.#rest()
    else this.#patienceMs = FIRST_PATIENCE_MS
    return leave
  }

  /** A handler that takes an hour must not have everybody wait for it again and again. */
  #rest(): void {
    this.#patienceMs = Math.min(this.#patienceMs * 2, LONGEST_PATIENCE_MS)
    this.#restsUntilMs = this.#clock.monotonicMs() + REST_PER_WAIT * this.#patienceMs
  }
}
