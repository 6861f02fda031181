import type { Lease, Settlement } from '../delivery/delivery.ts'
import type { OutboxEvent } from '../event/event.ts'
import { ignoreWorkerEvents, type Observer } from '../observe/worker-events.ts'
import type { LoggedEvent, ParkedEvent } from '../store/stream-store.ts'
import type { LogEntry } from './log-window.ts'

/** An event of the log on its way to a handler. Nothing is leased but the log itself. */
export interface LogDelivery {
  readonly event: OutboxEvent
  readonly attempt: number
  readonly maxAttempts: number
  readonly lease: Lease | null
}

/** Its event is read when its turn has come. */
export class FirstDelivery implements LogDelivery {
  readonly attempt = 1
  readonly maxAttempts: number
  readonly lease = null
  readonly #logged: LoggedEvent
  #event: OutboxEvent | undefined

  constructor(event: LoggedEvent, maxAttempts: number) {
    this.#logged = event
    this.maxAttempts = maxAttempts
  }

  get event(): OutboxEvent {
    this.#event ??= this.#logged.event
    return this.#event
  }
}

/** How an event is set aside whose attempt came to this. */
export function parkedAs(entry: LogEntry, settlement: Settlement, durationMs: number): ParkedEvent {
  if (settlement.kind === 'retry' || settlement.kind === 'dead') {
    const delayMs = settlement.kind === 'retry' ? settlement.delayMs : 0
    const { kind, failure } = settlement
    return { ...waiting(entry, delayMs), kind, failure, durationMs }
  }
  return waiting(entry, settlement.kind === 'release' ? settlement.delayMs : 0)
}

/** Not tried here: the queue takes it when its turn has come. */
export function waiting({ event, key }: LogEntry, delayMs: number): ParkedEvent {
  const { position, eventId } = event
  return { position, eventId, orderingKey: key, kind: 'wait', delayMs, failure: null, durationMs: 0 }
}

/** Tells what became of an event of the log. */
export function tellEnded(
  { observer, subscription }: { readonly observer: Observer; readonly subscription: string },
  delivery: LogDelivery,
  settlement: Settlement,
  durationMs: number,
): void {
  if (observer === ignoreWorkerEvents) return
  const { event, attempt, maxAttempts } = delivery
  const info = { subscription, event, attempt, maxAttempts }
  switch (settlement.kind) {
    case 'done':
      return observer({ kind: 'handled', durationMs, ...info })
    case 'dead':
      return observer({ kind: 'dead', failure: settlement.failure, durationMs, ...info })
    case 'retry': {
      const { failure, delayMs } = settlement
      return observer({ kind: 'retried', failure, delayMs, durationMs, ...info })
    }
    case 'release': {
      const { delayMs } = settlement
      const why = delayMs === 0 ? 'interrupted' : 'postponed'
      return observer({ kind: 'released', why, delayMs, ...info })
    }
    case 'park':
      return undefined
    default:
      return settlement satisfies never
  }
}
