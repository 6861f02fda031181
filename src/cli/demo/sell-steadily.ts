import { linkSignals } from '../../runtime/abort.ts'
import type { Clock } from '../../runtime/clock.ts'

/** How the shop is kept busy. */
export interface SellOptions {
  /** Business transactions per second. */
  readonly rate: number
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly sell: () => Promise<void>
}

const TICK_MS = 10
const MOST_AT_ONCE = 16

/**
 * Sells at a steady rate until the signal aborts, or as fast as the database allows where that is slower. Resolves when
 * the last transaction is over; rejects with the first that failed.
 */
export async function sellSteadily({ rate, clock, signal, sell }: SellOptions): Promise<void> {
  const inFlight = new Set<Promise<void>>()
  const failures: unknown[] = []
  const closing = linkSignals(signal)
  const startOne = (): void => {
    const sale = sell()
      .catch((error: unknown) => {
        failures.push(error)
        closing.abort()
      })
      .finally(() => inFlight.delete(sale))
    inFlight.add(sale)
  }
  const beganMs = clock.monotonicMs()
  let started = 0
  while (!closing.signal.aborted) {
    const due = 1 + Math.floor(((clock.monotonicMs() - beganMs) / 1_000) * rate)
    for (; started < due && inFlight.size < MOST_AT_ONCE; started += 1) startOne()
    await clock.sleep(TICK_MS, closing.signal)
  }
  closing.unlink()
  await Promise.all(inFlight)
  if (failures.length > 0) throw failures[0]
}
