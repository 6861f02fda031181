import type { Worker } from '../../src/index.ts'
import type { ManualClock } from '../../src/runtime/manual-clock.ts'

/**
 * Stops a worker on a clock that stands still: it goes on as the real one does meanwhile, because what is locked at the
 * end is offered to the database again after a moment.
 */
export function stoppedInTime(worker: Worker, clock: ManualClock): AsyncDisposable {
  return {
    [Symbol.asyncDispose]: async () => {
      const passing = setInterval(() => void clock.advance(10), 10)
      try {
        await worker.stop()
      } finally {
        clearInterval(passing)
      }
    },
  }
}
