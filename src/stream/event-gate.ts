import type { GateAnswer, LoggedEvent, StreamLease, StreamStore } from '../store/stream-store.ts'
import type { LogEntry } from './log-window.ts'

/** What asking about events of the log needs. */
export interface EventGateParts {
  readonly store: Pick<StreamStore, 'streamGate'>
  readonly lease: StreamLease
  /** What order follows; null where there is none. */
  keyOf(event: LoggedEvent): string | null
}

/** So few are named at once: a second question would take longer. */
const FEW = 100

/** Asks the database, before events are handed over, whether they may be and which of them have to wait. */
export class EventGate {
  readonly #parts: EventGateParts
  #hasOpen = false

  constructor(parts: EventGateParts) {
    this.#parts = parts
  }

  /** No event beyond `parkedTo` has a delivery. */
  async ask(batch: readonly LogEntry[], parkedTo: bigint): Promise<GateAnswer> {
    const { store, lease } = this.#parts
    const doubtful = doubtfulOf(batch, parkedTo)
    // Nearly always no key is open, and to name thousands of them costs more than to hand their events over.
    if (!this.#hasOpen && batch.length > FEW) {
      const answer = await store.streamGate(lease, [], doubtful)
      this.#hasOpen = answer.hasOpen
      if (!answer.hasOpen) return answer
    }
    const answer = await store.streamGate(lease, this.#keysOf(batch), doubtful)
    this.#hasOpen = answer.hasOpen
    return answer
  }

  #keysOf(batch: readonly LogEntry[]): readonly string[] {
    const keys = new Set<string>()
    for (const { event } of batch) {
      const key = this.#parts.keyOf(event)
      if (key !== null) keys.add(key)
    }
    return [...keys]
  }
}

/** Those that may have been handled already, or may be for another subscription only. */
function doubtfulOf(batch: readonly LogEntry[], parkedTo: bigint): readonly LoggedEvent[] {
  const doubtful: LoggedEvent[] = []
  for (const { event, mayStandIn } of batch) {
    // A position is only read where there is something to compare it with.
    if (mayStandIn || (parkedTo > 0n && BigInt(event.position) <= parkedTo)) doubtful.push(event)
  }
  return doubtful
}
