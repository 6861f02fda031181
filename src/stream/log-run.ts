import type { DeliveryOutcome, Settlement } from '../delivery/delivery.ts'
import type { Observer } from '../observe/worker-events.ts'
import type { Clock } from '../runtime/clock.ts'
import type { SoloGate } from '../runtime/gate.ts'
import { nextTurn } from '../runtime/turn.ts'
import type { LoggedEvent, ParkedEvent, StreamGate, StreamLease, StreamStore } from '../store/stream-store.ts'
import { KeyChains } from './key-chains.ts'
import { leaseLost } from './lease-lost.ts'
import { FirstDelivery, type LogDelivery, parkedAs, tellEnded, waiting } from './log-delivery.ts'
import { type LogEntry, LogWindow } from './log-window.ts'
import { Parking } from './parking.ts'

/** How the events of a log are handed over. */
export interface LogRunParts<Place> {
  readonly store: Pick<StreamStore, 'streamGate' | 'parkEvents'>
  readonly lease: StreamLease
  readonly subscription: string
  readonly orderBy: 'none' | 'aggregate' | 'total'
  readonly concurrency: number
  /** Whether several of a key may be handed over at once: whoever takes them keeps their order. */
  readonly together: boolean
  /** No event beyond this position has a delivery yet. */
  readonly parkedTo: bigint
  dispatch(delivery: LogDelivery): DeliveryOutcome | Promise<DeliveryOutcome>
  /** What is to become of an event whose attempt ended so. */
  decide(delivery: LogDelivery, outcome: DeliveryOutcome): Settlement
  /** Whether handlers may still be started: the lease was confirmed a short while ago. */
  isGood(): boolean
  /** One place for two that nothing came between. */
  readonly mergePlaces: (earlier: Place, later: Place) => Place
  /** Everything before these places has ended; the last is the farthest. */
  onPassed(places: readonly Place[]): void
  /** It cannot go on: the lease is lost, or the database refused. */
  onFailed(error: unknown): void
  /** Whoever has to run alone in this process holds others back there. */
  readonly gate: SoloGate
  readonly clock: Clock
  readonly observer: Observer
}

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
  readonly #stopped = new AbortController()
  #parkedTo: bigint
  #asked: LogEntry[] = []
  #isAsking = false
  #running = 0
  #isAtGate = false
  #leftToQueue: number
  #waiting: (() => void)[] = []

  constructor(parts: LogRunParts<Place>) {
    this.#parts = parts
    const { lease, store } = parts
    this.#window = new LogWindow(parts.mergePlaces)
    this.#chains = new KeyChains(parts.together)
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

  /** An event that the subscription wants. */
  offer(event: LoggedEvent): void {
    if (this.#stopped.signal.aborted || !this.#parts.lease.scope.wants(event)) return
    this.#asked.push(this.#window.add(event, this.#keyOf(event)))
    // Once for all that came in one go.
    if (!this.#isAsking) {
      this.#isAsking = true
      queueMicrotask(() => void this.#ask())
    }
  }

  /** A place in the log after all that was offered. */
  mark(place: Place): void {
    // What came since it was stopped is not in hand: no place after that is ever passed.
    if (this.#stopped.signal.aborted) return
    this.#window.mark(place)
    if (this.#window.size === 0) this.#tellPassed()
  }

  /** Resolves when there is room for as much again as is in hand, and when it was stopped. */
  async room(): Promise<void> {
    while (this.#isHalfFull && !this.#stopped.signal.aborted) await this.#change()
  }

  /** Resolves when nothing is in hand, and when it was stopped. */
  async empty(): Promise<void> {
    while (this.#window.size > 0 && !this.#stopped.signal.aborted) await this.#change()
  }

  /** Starts no more handlers. Resolves when those that run have ended, and what failed is written down. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    this.#wake()
    while (this.#running > 0) await this.#change()
    await this.#parking.idle()
  }

  /** The lease was confirmed: what waited for that may start. */
  confirmed(): void {
    this.#start()
    this.#tellPassed()
  }

  async #ask(): Promise<void> {
    try {
      while (this.#asked.length > 0 && !this.#stopped.signal.aborted) await this.#askNext()
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#isAsking = false
    }
  }

  async #askNext(): Promise<void> {
    const batch = this.#asked.slice(0, BATCH)
    this.#parking.beginLook()
    const gate = await this.#gate(batch)
    if (!gate.held) throw leaseLost()
    if (gate.paused) return this.#parts.clock.sleep(PAUSE_MS, this.#stopped.signal)
    this.#asked = this.#asked.slice(batch.length)
    for (const entry of batch) this.#route(entry, gate)
    this.#start()
    this.#tellPassed()
    // Handlers that come back at once must not keep the socket and the heartbeat from their turn.
    await nextTurn()
  }

  #gate(batch: readonly LogEntry[]): Promise<StreamGate> {
    const keys = new Set<string>()
    const doubtful: LoggedEvent[] = []
    for (const { event, key, mayStandIn } of batch) {
      if (key !== null) keys.add(key)
      if (mayStandIn || this.#mayBeParked(event)) doubtful.push(event)
    }
    return this.#parts.store.streamGate(this.#parts.lease, [...keys], doubtful)
  }

  #mayBeParked({ position }: LoggedEvent): boolean {
    return this.#parkedTo > 0n && BigInt(position) <= this.#parkedTo
  }

  #route(entry: LogEntry, gate: StreamGate): void {
    const { event, key } = entry
    if (gate.settled.size > 0 && gate.settled.has(event.eventId)) return this.#window.end(entry)
    const isOpen = key !== null && (gate.openKeys.has(key) || this.#parking.has(key))
    if (this.#leftToQueue === 0 && !isOpen) return this.#chains.add(entry)
    if (this.#leftToQueue > 0) this.#leftToQueue -= 1
    this.#park(entry, waiting(entry, 0))
  }

  #start(): void {
    while (this.#mayStart()) {
      if (!this.#parts.gate.tryEnter()) return this.#waitAtGate()
      const entry = this.#chains.take()
      if (entry !== undefined) this.#run(entry)
    }
  }

  #mayStart(): boolean {
    const hasRoom = this.#running < this.#parts.concurrency && this.#chains.ready > 0
    return hasRoom && !this.#stopped.signal.aborted && this.#parts.isGood()
  }

  #waitAtGate(): void {
    if (this.#isAtGate) return
    this.#isAtGate = true
    const { gate } = this.#parts
    void gate.enter(this.#stopped.signal).then((entered) => {
      this.#isAtGate = false
      if (!entered) return
      gate.leave()
      this.#start()
      this.#tellPassed()
    })
  }

  #run(entry: LogEntry): void {
    const { clock, lease, gate } = this.#parts
    const startedMs = clock.monotonicMs()
    const delivery = new FirstDelivery(entry.event, lease.maxAttempts)
    const outcome = this.#parts.dispatch(delivery)
    if (!(outcome instanceof Promise)) {
      gate.leave()
      return this.#ended(entry, delivery, outcome, startedMs)
    }
    this.#running += 1
    void outcome.then((result) => {
      this.#running -= 1
      gate.leave()
      this.#ended(entry, delivery, result, startedMs)
      this.#start()
      this.#tellPassed()
    })
  }

  #ended(entry: LogEntry, delivery: LogDelivery, outcome: DeliveryOutcome, startedMs: number): void {
    if (entry.aside) return
    const settlement = this.#parts.decide(delivery, outcome)
    const durationMs = this.#parts.clock.monotonicMs() - startedMs
    if (settlement.kind === 'done') {
      this.#window.end(entry)
      this.#chains.ended(entry)
      return tellEnded(this.#parts, delivery, settlement, durationMs)
    }
    const tell = (): void => tellEnded(this.#parts, delivery, settlement, durationMs)
    // Interrupted: whoever reads the log next hands it over again. If this one reads on, an event before it was not sent.
    const isInterrupted = settlement.kind === 'release' && settlement.delayMs === 0
    if (isInterrupted && this.#stopped.signal.aborted) return tell()
    // Told once it is written: whoever hears of a dead letter looks for it.
    this.#untold.set(entry, tell)
    this.#setAside(entry, parkedAs(entry, settlement, durationMs))
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
    if (!this.#stopped.signal.aborted) this.#parts.onFailed(error)
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
