import { linkSignals } from '../runtime/abort.ts'
import type { Clock } from '../runtime/clock.ts'
import type { SoloGate } from '../runtime/gate.ts'

/** Somebody who can run a suspect: a runner. */
export interface SuspectRunner {
  /** Claims one suspect and runs it. False when there was none. */
  runSuspect(): Promise<boolean>
}

const FIRST_PATIENCE_MS = 5_000
const LONGEST_PATIENCE_MS = 600_000

/**
 * Runs suspects, deliveries whose last holder vanished, one at a time and with nothing beside them: if one takes the
 * process down, it is clear which.
 */
export class SuspectQuarantine {
  readonly #gate: SoloGate
  readonly #clock: Clock
  /** While a suspect waits for running handlers nothing new starts, so it gives up in time and waits longer next. */
  #patienceMs = FIRST_PATIENCE_MS

  constructor(gate: SoloGate, clock: Clock) {
    this.#gate = gate
    this.#clock = clock
  }

  /** Runs all suspects of a runner that are due, others in between having their turn. Rejects if a claim fails. */
  async runAll(runner: SuspectRunner, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const leave = await this.#enterAlone(stop)
      if (leave === null) return
      try {
        if (!(await runner.runSuspect())) return
      } finally {
        leave()
      }
    }
  }

  async #enterAlone(stop: AbortSignal): Promise<(() => void) | null> {
    const patience = linkSignals(stop)
    const entered = new AbortController()
    const timeIsUp = this.#clock.sleep(this.#patienceMs, entered.signal).then(() => patience.abort())
    const leave = await this.#gate.exclusive(patience.signal)
    entered.abort()
    patience.unlink()
    await timeIsUp
    this.#patienceMs =
      leave === null ? Math.min(this.#patienceMs * 2, LONGEST_PATIENCE_MS) : FIRST_PATIENCE_MS
    return leave
  }
}
