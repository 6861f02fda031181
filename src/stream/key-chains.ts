import { Fifo } from './fifo.ts'
import type { LogEntry } from './log-window.ts'

/** Which events in hand may start: of a key one at a time, in the order of the log; without a key, all. */
export class KeyChains {
  readonly #together: boolean
  readonly #last = new Map<string, LogEntry>()
  readonly #ready = new Fifo<LogEntry>()

  /**
   * `together` starts all of a key, in order: only where whoever runs them keeps that order, and lets none of them succeed
   * behind one that did not.
   */
  constructor(together: boolean) {
    this.#together = together
  }

  /** How many wait to be started. */
  get ready(): number {
    return this.#ready.size
  }

  add(entry: LogEntry): void {
    const { key } = entry
    if (key === null) return this.#ready.push(entry)
    const last = this.#last.get(key)
    this.#last.set(key, entry)
    if (last !== undefined) last.next = entry
    if (last === undefined || this.#together) this.#ready.push(entry)
  }

  /** The next that may start. */
  take(): LogEntry | undefined {
    return this.#ready.take()
  }

  /** It has ended: the next of its key may start. */
  ended(entry: LogEntry): void {
    if (entry.key === null) return
    if (entry.next === null) this.#last.delete(entry.key)
    else if (!this.#together) this.#ready.push(entry.next)
  }

  /** It was set aside: all that stand behind it are to be set aside too, and are returned. None of them starts any more. */
  cut(entry: LogEntry): readonly LogEntry[] {
    const behind: LogEntry[] = []
    for (let next = entry.next; next !== null; next = next.next) behind.push(next)
    if (entry.key !== null) this.#last.delete(entry.key)
    if (this.#together && behind.length > 0) this.#ready.remove(new Set(behind))
    return behind
  }
}
