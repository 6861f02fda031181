import type {
  ClaimedDelivery,
  DeliveryFailure,
  DeliveryKey,
  Settled,
  Settlement,
} from '../delivery/delivery.ts'
import { FAILURE_MEANINGS, NOT_COMMITTED } from '../delivery/failure.ts'
import { ignoreWorkerEvents, type Observer } from '../observe/worker-events.ts'
import type { CrashedDelivery, SettleReport } from '../store/queue-store.ts'
import { type Held, keyText } from './hand.ts'

/** How an attempt ended, with the delivery it was about. */
export interface Ended<Delivery extends ClaimedDelivery> extends Settled {
  readonly delivery: Delivery
  readonly held: Held<Delivery>
}

/** Tells of a claim, and of what it brought. */
export function tellClaimed(
  observer: Observer,
  subscription: string,
  deliveries: readonly ClaimedDelivery[],
  durationMs: number,
): void {
  const count = deliveries.length
  const suspects = deliveries.reduce((sum, { suspect }) => sum + Number(suspect), 0)
  observer({ kind: 'claimed', subscription, count, suspects, durationMs, deliveries })
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

/** What became of a delivery: lost before it could be written down, committed by its handler, or settled as decided. */
export type Fate = 'lost' | 'committed' | 'settled'

/** Whether an earlier try that failed may have written a result. */
export type MayBeWritten<Delivery extends ClaimedDelivery> = (ended: Ended<Delivery>) => boolean

/** Tells of each result of a batch what became of it. */
export function judge<Delivery extends ClaimedDelivery>(
  report: SettleReport,
  mayBeWritten: MayBeWritten<Delivery>,
): (ended: Ended<Delivery>) => Fate {
  const lost = keysOf(report.lost)
  const over = keysOf(report.over)
  const committed = keysOf(report.committed)
  const wasWritten = ({ delivery, held, settlement: { kind } }: Ended<Delivery>): boolean =>
    // To a heartbeat what is written is lost as well. Of what goes back nobody can tell who gave it back.
    kind === 'done' || kind === 'dead' ? over?.has(keyText(delivery)) === true : !held.lost
  return (ended) => {
    const isLost = lost?.has(keyText(ended.delivery)) === true
    if (isLost && !(mayBeWritten(ended) && wasWritten(ended))) return 'lost'
    return committed?.has(keyText(ended.delivery)) === true ? 'committed' : 'settled'
  }
}

function keysOf(keys: readonly DeliveryKey[]): ReadonlySet<string> | null {
  return keys.length === 0 ? null : new Set(keys.map(keyText))
}

/** Tells what became of a delivery. */
export function tellSettled(
  observer: Observer,
  subscription: string,
  { delivery, settlement, durationMs }: Settled,
  fate: Fate,
): void {
  if (observer === ignoreWorkerEvents) return
  const { event, attempt, maxAttempts } = delivery
  const info = { subscription, event, attempt, maxAttempts }
  if (fate === 'lost') return observer({ kind: 'leaseLost', ...info })
  if (fate === 'committed') {
    return observer({ kind: 'handled', durationMs, ...info, ...failureAfterwards(settlement) })
  }
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

/** What a handler threw after the transaction in which it completed the event: the event is done all the same. */
function failureAfterwards(settlement: Settlement): { readonly failure?: DeliveryFailure } {
  if (!('failure' in settlement) || settlement.failure.code === NOT_COMMITTED.code) return {}
  return { failure: settlement.failure }
}
