import type { DeliveryOutcome, Settlement } from '../delivery/delivery.ts'
import { ignoreWorkerEvents } from '../observe/worker-events.ts'
import { nextTurn } from '../runtime/turn.ts'
import type { GateAnswer, LoggedEvent, ParkedEvent } from '../store/stream-store.ts'
import { EventGate } from './event-gate.ts'
import { KeyChains } from './key-chains.ts'
import { leaseLost } from './lease-lost.ts'
import { FirstDelivery, type LogDelivery, parkedAs, tellEnded, waiting } from './log-delivery.ts'
import type { LogRunParts } from './log-run-parts.ts'
import { type LogEntry, LogWindow } from './log-window.ts'
import { Parking } from './parking.ts'

/** Asked about at once. */
const BATCH = 5_000
/** What is in hand at most, before whoever brings more has to wait. */
const MOST_EVENTS = 10_000
const MOST_BYTES = 16 * 1_024 * 1_024
/** After readers vanished twice without getting further: as many as they may have had in hand are left to the queue. */
const CRASHES_BORNE = 1
const PAUSE_MS = 200

/** Hands the events of a log to handlers: in order per key, many at once, and what fails to the queue. */
export class LogRun<Place> {
  readonly #parts: LogRunParts<Place>
  readonly #window: LogWindow<Place>
  readonly #chains: KeyChains
  readonly #parking: Parking
  readonly #untold = new Map<LogEntry, () => void>()
  readonly #eventGate: EventGate
  readonly #stopping = new AbortController()
  /** Asked several times for each event: a signal takes longer to answer. */
  #isStopped = false
  #parkedTo: bigint
  #asked: LogEntry[] = []
  #isAsking = false
  #running = 0
  #isAtSoloGate = false
  #leftToQueue: number
  #waiting: (() => void)[] = []

  constructor(parts: LogRunParts<Place>) {
    this.#parts = parts
    const { lease, store } = parts
    this.#window = new LogWindow(parts.mergePlaces)
    this.#chains = new KeyChains(parts.together)
    this.#eventGate = new EventGate({ store, lease, keyOf: (event) => this.#keyOf(event) })
    this.#parkedTo = parts.parkedTo
    this.#leftToQueue = lease.crashes > CRASHES_BORNE ? MOST_EVENTS * 2 : 0
    this.#parking = new Parking({
      park: (events) => store.parkEvents(lease, events),
      onParked: (entries) => this.#end(entries),
      onFailed: (error) => this.#fail(error),
    })
  }

  /** Whether whoever brings events should wait. */
  get isFull(): boolean {
    return this.#window.size >= MOST_EVENTS || this.#window.bytes >= MOST_BYTES
  }

  get #isHalfFull(): boolean {
    return this.#window.size >= MOST_EVENTS / 2 || this.#window.bytes >= MOST_BYTES / 2
  }

  /** How many handlers run. */
  get running(): number {
    return this.#running
  }

  /** No event beyond this position has a delivery: for whoever hands the same events over again. */
  get parkedTo(): bigint {
    return this.#parkedTo
  }

  /** An event that came. Returns whether it is in hand now: whether the subscription wants it. */
  offer(event: LoggedEvent): boolean {
    if (this.#isStopped || !this.#parts.lease.scope.wants(event)) return false
    this.#asked.push(this.#window.add(event))
    // Once for all that came in one go.
    if (!this.#isAsking) {
      this.#isAsking = true
      queueMicrotask(() => void this.#ask())
    }
    return true
  }

  /** A place in the log after all that was offered. */
  mark(place: Place): void {
    // What came since it was stopped is not in hand: no place after that is ever passed.
    if (this.#isStopped) return
    this.#window.mark(place)
    if (this.#window.size === 0) this.#tellPassed()
  }

  /** Resolves when there is room for as much again as is in hand, and when it was stopped. */
  async room(): Promise<void> {
    while (this.#isHalfFull && !this.#isStopped) await this.#change()
  }

  /** Resolves when nothing is in hand, and when it was stopped. */
  async empty(): Promise<void> {
    while (this.#window.size > 0 && !this.#isStopped) await this.#change()
  }

  /** Starts no more handlers. Resolves when those that run have ended, and what failed is written down. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stopping.abort()
    this.#wake()
    while (this.#running > 0) await this.#change()
    await this.#parking.idle()
  }

  /** The lease was confirmed: what waited for that, or for the end of a pause, may start. */
  confirmed(): void {
    this.#start()
    this.#tellPassed()
  }

  async #ask(): Promise<void> {
    try {
      while (this.#asked.length > 0 && !this.#isStopped) await this.#askNext()
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#isAsking = false
    }
  }

  async #askNext(): Promise<void> {
    const batch = this.#asked.slice(0, BATCH)
    this.#parking.beginLook()
    const answer = await this.#eventGate.ask(batch, this.#parkedTo)
    if (!answer.held) throw leaseLost()
    // Nobody waits for what would be set aside now.
    if (this.#isStopped) return
    if (answer.paused) return this.#parts.clock.sleep(PAUSE_MS, this.#stopping.signal)
    this.#asked = this.#asked.slice(batch.length)
    for (const entry of batch) {
      this.#route(entry, answer)
      // Each at once where that is possible: what is made for it is then gone before the next.
      this.#start()
    }
    this.#tellPassed()
    // Handlers that come back at once must not keep the socket and the heartbeat from their turn.
    await nextTurn()
  }

  #route(entry: LogEntry, answer: GateAnswer): void {
    const { event } = entry
    if (answer.settled.size > 0 && answer.settled.has(event.eventId)) return this.#window.end(entry)
    const key = this.#keyOf(event)
    entry.key = key
    const isOpen = key !== null && (answer.openKeys.has(key) || this.#parking.has(key))
    if (this.#leftToQueue === 0 && !isOpen) return this.#chains.add(entry)
    if (this.#leftToQueue > 0) this.#leftToQueue -= 1
    this.#park(entry, waiting(entry, 0))
  }

  #start(): void {
    const { clock, concurrency, soloGate, isGood } = this.#parts
    while (this.#running < concurrency && this.#chains.ready > 0 && !this.#isStopped) {
      const nowMs = clock.monotonicMs()
      if (!isGood(nowMs)) return
      if (!soloGate.tryEnter()) return this.#waitAtSoloGate()
      const entry = this.#chains.take()
      if (entry !== undefined) this.#run(entry, nowMs)
    }
  }

  #waitAtSoloGate(): void {
    if (this.#isAtSoloGate) return
    this.#isAtSoloGate = true
    const { soloGate } = this.#parts
    void soloGate.enter(this.#stopping.signal).then((entered) => {
      this.#isAtSoloGate = false
      if (!entered) return
      soloGate.leave()
      this.#start()
      this.#tellPassed()
    })
  }

  #run(entry: LogEntry, startedMs: number): void {
    const { lease, soloGate } = this.#parts
    const delivery = new FirstDelivery(entry.event, lease.maxAttempts)
    const outcome = this.#parts.dispatch(delivery)
    if (!(outcome instanceof Promise)) {
      soloGate.leave()
      return this.#ended(entry, delivery, outcome, startedMs)
    }
    this.#running += 1
    void outcome.then((result) => {
      this.#running -= 1
      soloGate.leave()
      this.#ended(entry, delivery, result, startedMs)
      this.#start()
      this.#tellPassed()
    })
  }

  #ended(entry: LogEntry, delivery: LogDelivery, outcome: DeliveryOutcome, startedMs: number): void {
    if (entry.aside) return
    const settlement = this.#parts.decide(delivery, outcome)
    if (settlement.kind === 'done') return this.#succeeded(entry, delivery, settlement, startedMs)
    const durationMs = this.#parts.clock.monotonicMs() - startedMs
    const tell = (): void => tellEnded(this.#parts, delivery, settlement, durationMs)
    // Interrupted: whoever reads the log next hands it over again. If this one reads on, an event before it was not sent.
    const isInterrupted = settlement.kind === 'release' && settlement.delayMs === 0
    if (isInterrupted && this.#isStopped) return tell()
    // Told once it is written: whoever hears of a dead letter looks for it.
    this.#untold.set(entry, tell)
    this.#setAside(entry, parkedAs(entry, settlement, durationMs))
  }

  #succeeded(entry: LogEntry, delivery: LogDelivery, settlement: Settlement, startedMs: number): void {
    this.#window.end(entry)
    this.#chains.ended(entry)
    if (this.#parts.observer === ignoreWorkerEvents) return
    tellEnded(this.#parts, delivery, settlement, this.#parts.clock.monotonicMs() - startedMs)
  }

  /** Later ones of its key go to the queue behind it. */
  #setAside(entry: LogEntry, parked: ParkedEvent): void {
    this.#park(entry, parked)
    for (const behind of this.#chains.cut(entry)) this.#park(behind, waiting(behind, 0))
  }

  #park(entry: LogEntry, parked: ParkedEvent): void {
    entry.aside = true
    const position = BigInt(parked.position)
    if (position > this.#parkedTo) this.#parkedTo = position
    this.#parking.add(entry, parked)
  }

  #end(entries: readonly LogEntry[]): void {
    for (const entry of entries) {
      this.#window.end(entry)
      this.#untold.get(entry)?.()
      this.#untold.delete(entry)
    }
    this.#tellPassed()
  }

  #tellPassed(): void {
    const places = this.#window.passed()
    if (places.length > 0) this.#parts.onPassed(places)
    this.#wake()
  }

  #keyOf(event: LoggedEvent): string | null {
    const { orderBy } = this.#parts
    if (orderBy === 'none') return null
    return orderBy === 'total' ? '' : event.orderingKey
  }

  #fail(error: unknown): void {
    if (!this.#isStopped) this.#parts.onFailed(error)
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #wake(): void {
    if (this.#waiting.length === 0) return
    const woken = this.#waiting
    this.#waiting = []
    for (const wake of woken) wake()
  }
}
