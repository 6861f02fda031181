import type { ClaimedDelivery, DeliveryOutcome } from '../delivery/delivery.ts'
import type { Clock } from '../runtime/clock.ts'
import type { SoloGate } from '../runtime/gate.ts'
import { nextTurn } from '../runtime/turn.ts'
import type { Backlog } from './backlog.ts'
import type { Held } from './hand.ts'

/** What runs handlers is made of. */
export interface ExecutorParts<Delivery extends ClaimedDelivery> {
  readonly backlog: Pick<Backlog<Delivery>, 'ready' | 'next'>
  readonly soloGate: SoloGate
  readonly clock: Clock
  readonly concurrency: number
  /** Hands one delivery over. Never throws and never rejects. */
  dispatch(delivery: Delivery): DeliveryOutcome | Promise<DeliveryOutcome>
  /** Whether its lease is good enough to start it. */
  isGood(held: Held<Delivery>, nowMs: number): boolean
  /** Told how each attempt ended, before the next one starts in its place. */
  onEnded(held: Held<Delivery>, outcome: DeliveryOutcome, durationMs: number): void
  /** Told whenever something was taken from the backlog. */
  onTaken(): void
  /** Told when nothing is running and nothing is ready. */
  onIdle(): void
  /** Told of a bug: everything above is meant not to throw. */
  onFault(error: unknown): void
}

const INTERRUPTED: DeliveryOutcome = { kind: 'interrupted' }

/** Handlers that never wait would keep timers and sockets waiting: after so long, everybody else has a turn. */
const LONGEST_TURN_MS = 5

/** Runs what the backlog allows, so many at once: as many loops, each taking the next when it is done with the last. */
export class Executor<Delivery extends ClaimedDelivery> {
  readonly #parts: ExecutorParts<Delivery>
  readonly #closing = new AbortController()
  #loops = 0
  #handling = 0
  #ended = 0
  #busyMs = 0
  #busySinceMs = 0
  #turnSinceMs = 0
  #yielding: Promise<void> | null = null

  constructor(parts: ExecutorParts<Delivery>) {
    this.#parts = parts
  }

  /** How many handlers are running. */
  get handling(): number {
    return this.#handling
  }

  /** Starts as many loops as there is work and room for. */
  pump(): void {
    const { backlog, concurrency } = this.#parts
    this.#turnSinceMs = this.#parts.clock.monotonicMs()
    while (this.#loops < concurrency && backlog.ready > 0) void this.#loop()
  }

  /** Loops that wait for their turn give up; what is running goes on. */
  close(): void {
    this.#closing.abort()
  }

  /** How many handlers ended, and for how long any was running, since this was last asked. */
  takeSample(): { readonly ended: number; readonly busyMs: number } {
    if (this.#handling > 0) {
      const nowMs = this.#parts.clock.monotonicMs()
      this.#busyMs += nowMs - this.#busySinceMs
      this.#busySinceMs = nowMs
    }
    const sample = { ended: this.#ended, busyMs: this.#busyMs }
    this.#ended = 0
    this.#busyMs = 0
    return sample
  }

  async #loop(): Promise<void> {
    const { backlog, soloGate } = this.#parts
    this.#loops += 1
    while (backlog.ready > 0 && (soloGate.tryEnter() || (await soloGate.enter(this.#closing.signal)))) {
      try {
        const held = backlog.next()
        const startedMs = this.#parts.clock.monotonicMs()
        if (held !== null && this.#begin(held, startedMs)) {
          const outcome = this.#parts.dispatch(held.delivery)
          // A handler that finished at once is not waited for: a promise per event would cost more than the event.
          this.#end(held, outcome instanceof Promise ? await outcome : outcome, startedMs)
        }
      } catch (error) {
        this.#parts.onFault(error)
      }
      soloGate.leave()
      if (this.#turnIsOver()) await this.#yieldTurn()
    }
    this.#loops -= 1
    if (this.#loops === 0 && backlog.ready === 0) this.#parts.onIdle()
  }

  /** Whether it is to be handed over. */
  #begin(held: Held<Delivery>, nowMs: number): boolean {
    this.#parts.onTaken()
    if (!this.#parts.isGood(held, nowMs)) {
      this.#parts.onEnded(held, INTERRUPTED, 0)
      return false
    }
    if (this.#handling === 0) this.#busySinceMs = nowMs
    this.#handling += 1
    return true
  }

  #end(held: Held<Delivery>, outcome: DeliveryOutcome, startedMs: number): void {
    const nowMs = this.#parts.clock.monotonicMs()
    this.#handling -= 1
    this.#ended += 1
    if (this.#handling === 0) this.#busyMs += nowMs - this.#busySinceMs
    this.#parts.onEnded(held, outcome, nowMs - startedMs)
  }

  #turnIsOver(): boolean {
    return this.#yielding !== null || this.#parts.clock.monotonicMs() - this.#turnSinceMs > LONGEST_TURN_MS
  }

  // Shared by all loops: one that went on alone would still keep everybody else waiting.
  #yieldTurn(): Promise<void> {
    this.#yielding ??= nextTurn().then(() => {
      this.#yielding = null
      this.#turnSinceMs = this.#parts.clock.monotonicMs()
    })
    return this.#yielding
  }
}
