import type { DeliveryOutcome, Lease } from '../delivery/delivery.ts'
import type { OutboxEvent } from '../event/event.ts'

/** What a dispatcher needs to know of a delivery, wherever it came from. A `ClaimedDelivery` fits. */
export interface DispatchedDelivery {
  readonly event: OutboxEvent
  /** 1 for the first. */
  readonly attempt: number
  readonly maxAttempts: number
  /** Null where nothing is leased: an event from the log or from Kafka. */
  readonly lease: Lease | null
}

/** Why an attempt was ended from outside. */
export interface Ending {
  readonly why: 'timeout' | 'interruption'
  /** What `ctx.signal` aborts with. */
  readonly reason: Error
}

/** One run of a handler. While it waits for a promise it is a node of the dispatcher's list of running attempts. */
export class Attempt<Delivery extends DispatchedDelivery = DispatchedDelivery> {
  readonly delivery: Delivery
  /** The event as the handler sees it: upcast and validated once the reader is through. */
  event: OutboxEvent
  startedMs = 0
  previous: Attempt<Delivery> | null = null
  next: Attempt<Delivery> | null = null
  ending: Ending | null = null
  /** True from the moment the handler is called: what is thrown before is the reader's. */
  handed = false
  /** True once the handler has marked, or is marking, the delivery done in its own transaction. */
  completed = false
  /** True once the outcome is known to the caller; what comes later is ignored. */
  over = false
  #resolve: ((outcome: DeliveryOutcome) => void) | null = null
  #controller: AbortController | null = null

  constructor(delivery: Delivery) {
    this.delivery = delivery
    this.event = delivery.event
  }

  /** Made on first use: most handlers never look at it, and a controller costs more than all else here. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (this.ending !== null) this.#controller.abort(this.ending.reason)
    }
    return this.#controller.signal
  }

  /** Whether the handler could know that it was told to stop. */
  get signalWasRead(): boolean {
    return this.#controller !== null
  }

  /** The outcome to come. Asked for once, and only when the handler did not finish synchronously. */
  outcome(): Promise<DeliveryOutcome> {
    return new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  /** Aborts the signal. The handler may still finish by itself until `settle` is called. */
  end(ending: Ending): void {
    if (this.ending !== null || this.over) return
    this.ending = ending
    this.#controller?.abort(ending.reason)
  }

  /** Tells the caller. The first call counts. */
  settle(outcome: DeliveryOutcome): void {
    if (this.over) return
    this.over = true
    this.#resolve?.(outcome)
  }
}
