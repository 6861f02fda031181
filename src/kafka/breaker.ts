import { Outage } from '../runtime/outage.ts'
import type { Random } from '../runtime/random.ts'

/** What a breaker is made of. */
export interface BreakerParts {
  readonly random: Random
  /**
   * Told when it opens: of the first failure after a success.
   * @default nobody
   */
  readonly onOpen?: (error: unknown) => void
}

type State =
  | { readonly kind: 'closed' }
  /** Nobody goes before that time. */
  | { readonly kind: 'open'; readonly untilMs: number }
  /** One is trying; the others wait for what it finds. */
  | { readonly kind: 'trying' }

const CLOSED: State = { kind: 'closed' }
const TRYING: State = { kind: 'trying' }
/** How soon somebody who waits for another's try looks again. */
const LOOK_AGAIN_MS = 50

/**
 * Keeps everybody from a destination that is down: after a failure nobody goes there for a while, then one tries, and
 * when that succeeds all go on. The pause grows from 100 ms to 5 s. It knows no clock: callers say what time it is.
 */
export class Breaker {
  readonly #outage: Outage
  #state: State = CLOSED

  constructor(parts: BreakerParts) {
    this.#outage = new Outage({ random: parts.random, onBegin: (error) => parts.onOpen?.(error) })
  }

  /** True while nobody but a try may go. */
  get isOpen(): boolean {
    return this.#state.kind !== 'closed'
  }

  /** How long to wait before asking again, in milliseconds; 0 lets the caller go, who then tells how it went. */
  waitMs(nowMs: number): number {
    if (this.#state.kind === 'closed') return 0
    if (this.#state.kind === 'trying') return LOOK_AGAIN_MS
    if (nowMs < this.#state.untilMs) return this.#state.untilMs - nowMs
    this.#state = TRYING
    return 0
  }

  /** The destination answered, if only with a refusal. */
  answered(): void {
    this.#outage.succeeded()
    this.#state = CLOSED
  }

  /** The destination could not be reached, or could not work. */
  failed(nowMs: number, error: unknown): void {
    this.#state = { kind: 'open', untilMs: nowMs + this.#outage.failed(error) }
  }

  /** Whoever was let go gave up before it knew: the next one may try. */
  gaveUp(nowMs: number): void {
    if (this.#state.kind === 'trying') this.#state = { kind: 'open', untilMs: nowMs }
  }
}
