import type { LoggedEvent } from '../store/stream-store.ts'
import { Fifo } from './fifo.ts'

/** An event of the log in hand. */
export interface LogEntry {
  readonly event: LoggedEvent
  /** What order follows; null where there is none, and until it is read: a text for each that waits is dear. */
  key: string | null
  /** Whether the event may stand in for another: asked as it comes, while its row is at hand. */
  readonly mayStandIn: boolean
  /** The next in hand of the same key, which waits for this one. */
  next: LogEntry | null
  done: boolean
  /** It was given to the queue: what its attempt comes to, if one runs, is of no concern. */
  aside: boolean
}

interface Mark<Place> {
  readonly place: Place
  /** How many events came before it. */
  readonly after: number
}

/**
 * What is in hand of a log, in its order. Events end in any order; a place in the log is passed when everything before it
 * has ended.
 */
export class LogWindow<Place> {
  readonly #merge: (earlier: Place, later: Place) => Place
  readonly #entries = new Fifo<LogEntry>()
  #passed = 0
  #marks: Mark<Place>[] = []
  #bytes = 0

  /** `merge` makes one of two places that nothing came between. */
  constructor(merge: (earlier: Place, later: Place) => Place) {
    this.#merge = merge
  }

  /** How many are in hand. */
  get size(): number {
    return this.#entries.size
  }

  get bytes(): number {
    return this.#bytes
  }

  add(event: LoggedEvent): LogEntry {
    const { mayStandIn } = event
    const entry: LogEntry = { event, key: null, mayStandIn, next: null, done: false, aside: false }
    this.#entries.push(entry)
    this.#bytes += event.bytes
    return entry
  }

  /**
   * Notes a place after everything that was added. Of places that nothing came between one is kept: any number of commits
   * that hold nothing for this subscription may come while an event is in hand.
   */
  mark(place: Place): void {
    const after = this.#passed + this.size
    const last = this.#marks.at(-1)
    if (last?.after !== after) this.#marks.push({ place, after })
    else this.#marks[this.#marks.length - 1] = { place: this.#merge(last.place, place), after }
  }

  /** An event has ended. Call `passed` afterwards. */
  end(entry: LogEntry): void {
    entry.done = true
  }

  /** The places that were passed since it was asked last, in order. */
  passed(): readonly Place[] {
    for (let first = this.#entries.first; first?.done === true; first = this.#entries.first) {
      this.#bytes -= first.event.bytes
      this.#passed += 1
      this.#entries.take()
    }
    let count = 0
    while (count < this.#marks.length && (this.#marks[count]?.after ?? 0) <= this.#passed) count += 1
    return count === 0 ? [] : this.#marks.splice(0, count).map(({ place }) => place)
  }
}
