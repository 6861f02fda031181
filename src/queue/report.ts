import type { ClaimedDelivery, Settled } from '../delivery/delivery.ts'
import { FAILURE_MEANINGS } from '../delivery/failure.ts'
import { ignoreWorkerEvents, type Observer } from '../observe/worker-events.ts'
import type { CrashedDelivery } from '../store/queue-store.ts'
import type { Held } from './hand.ts'

/** How an attempt ended, with the delivery it was about. */
export interface Ended<Delivery extends ClaimedDelivery> extends Settled {
  readonly delivery: Delivery
  readonly held: Held<Delivery>
}

/** Tells of deliveries that are dead because their workers vanished while they ran them alone. */
export function tellCrashed(
  observer: Observer,
  subscription: string,
  crashed: readonly CrashedDelivery[],
): void {
  for (const { event, attempt, maxAttempts, errorCode } of crashed) {
    const failure = { code: errorCode, message: FAILURE_MEANINGS.CRASHED }
    observer({ kind: 'dead', failure, durationMs: 0, subscription, event, attempt, maxAttempts })
  }
}

/** Tells what became of a delivery once it is written down, or that it was lost before it could be. */
export function tellSettled(
  observer: Observer,
  subscription: string,
  { delivery, settlement, durationMs }: Settled,
  lost: boolean,
): void {
  if (observer === ignoreWorkerEvents) return
  const { event, attempt, maxAttempts } = delivery
  const info = { subscription, event, attempt, maxAttempts }
  if (lost) return observer({ kind: 'leaseLost', ...info })
  switch (settlement.kind) {
    case 'done':
      return observer({ kind: 'handled', durationMs, ...info })
    case 'retry': {
      const { failure, delayMs } = settlement
      return observer({ kind: 'retried', failure, delayMs, durationMs, ...info })
    }
    case 'dead':
      return observer({ kind: 'dead', failure: settlement.failure, durationMs, ...info })
    case 'release': {
      const { delayMs } = settlement
      return observer({
        kind: 'released',
        why: delayMs === 0 ? 'interrupted' : 'postponed',
        delayMs,
        ...info,
      })
    }
    case 'park':
      // Waiting its turn is the daily life of an ordered event and nothing to tell.
      return undefined
    default:
      return settlement satisfies never
  }
}
