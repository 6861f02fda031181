import type { MissedEvents } from '../store/stream-store.ts'
import { leaseLost } from './lease-lost.ts'

/** How many pages from the table are handled before it is recorded how far that is. */
const PAGES_PER_RECORD = 5

/** Records now and then how far the table was handed over. */
export class PassRecord {
  readonly #missed: MissedEvents
  readonly #onFailed: (error: unknown) => void
  #pages = 0
  #writing: Promise<void> = Promise.resolve()

  constructor(missed: MissedEvents, onFailed: (error: unknown) => void) {
    this.#missed = missed
    this.#onFailed = onFailed
  }

  passed(positions: readonly string[]): void {
    this.#pages += positions.length
    const last = positions.at(-1)
    if (this.#pages < PAGES_PER_RECORD || last === undefined) return
    this.#pages = 0
    this.#writing = this.#writing.then(() => this.#write(last)).catch(this.#onFailed)
  }

  idle(): Promise<void> {
    return this.#writing
  }

  async #write(position: string): Promise<void> {
    if (!(await this.#missed.reached(position))) throw leaseLost()
  }
}
