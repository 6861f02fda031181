import { Outage } from '../runtime/outage.ts'
import { jittered } from '../runtime/periodic.ts'
import { property } from '../runtime/property.ts'
import type { StreamHeld, StreamLease } from '../store/stream-store.ts'
import { LogTurn } from './log-turn.ts'
import { LOOKS_PER_LEASE, type StreamReaderParts } from './reader-parts.ts'

const JITTER = 0.2
/** After another's lease has lapsed: it is taken once that is past, not in the same moment. */
const AFTER_LAPSE_MS = 20

/**
 * Reads the log for a subscription whenever no other worker does. All workers of a subscription have one: those that have
 * not got the log stand by.
 */
export class StreamReader {
  readonly #parts: StreamReaderParts
  readonly #stopping = new AbortController()
  readonly #outage: Outage
  #turn: LogTurn | null = null
  #loop: Promise<void> = Promise.resolve()
  /** The last that was told. */
  #told: unknown = null

  constructor(parts: StreamReaderParts) {
    this.#parts = parts
    this.#outage = new Outage({ random: parts.random, onBegin: (error) => this.#tell(error) })
  }

  /** How many handlers run. */
  get running(): number {
    return this.#turn?.running ?? 0
  }

  /** Gives the log up if no heartbeat has confirmed the lease for too long. */
  expire(): void {
    this.#turn?.expire()
  }

  start(): void {
    this.#loop = this.#run()
  }

  /** Hands over no more, waits for running handlers, records how far it is and lets another have the log. Never rejects. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#turn?.end(null)
    await this.#loop
  }

  /** Ends running handlers: their events come again. */
  interrupt(reason: Error): void {
    this.#parts.interrupt(reason, 0)
  }

  async #run(): Promise<void> {
    const { clock } = this.#parts
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const pauseMs = await this.#look().catch((error: unknown) => this.#failed(error))
      if (pauseMs === null) return
      if (!signal.aborted) await clock.sleep(pauseMs, signal)
    }
  }

  /** Before the next look, while another has the log: it may give it back at any time, and vanish without doing so. */
  #pauseMs({ heldForMs }: StreamHeld): number {
    const { leaseMs, random } = this.#parts
    const usualMs = jittered(leaseMs / LOOKS_PER_LEASE, JITTER, random)
    return Math.min(usualMs, heldForMs + AFTER_LAPSE_MS)
  }

  /** Returns how long to wait before the next look: null is that there is none. */
  async #look(): Promise<number | null> {
    const { store, subscription, workerId, leaseMs, clock } = this.#parts
    const askedMs = clock.monotonicMs()
    const taken = await store.takeStream(subscription.id, workerId, leaseMs)
    if (taken === 'retired') {
      await store.forgetLog(subscription.id)
      return null
    }
    if ('heldForMs' in taken) return this.#pauseMs(taken)
    const failure = await this.#read(taken, askedMs)
    if (failure === null) return 0
    if (property(failure.error, 'code') !== 'LEASE_LOST') throw failure.error
    // Another took over, or somebody widened the subscription: look at once.
    this.#tell(failure.error)
    return 0
  }

  /** Of an outage the first failure is told, and each remedy that comes out later. */
  #failed(error: unknown): number {
    const pauseMs = this.#outage.failed(error)
    const isRemedy = property(error, 'code') === 'STREAM_UNAVAILABLE'
    if (isRemedy && property(error, 'message') !== property(this.#told, 'message')) this.#tell(error)
    return pauseMs
  }

  #tell(error: unknown): void {
    this.#told = error
    const { observer, subscription } = this.#parts
    observer({ kind: 'error', during: 'log stream', error, subscription: subscription.name })
  }

  async #read(lease: StreamLease, confirmedMs: number): Promise<{ readonly error: unknown } | null> {
    const turn = new LogTurn({ ...this.#parts, lease, confirmedMs, onWell: () => this.#outage.succeeded() })
    this.#turn = turn
    try {
      if (this.#stopping.signal.aborted) turn.end(null)
      return await turn.run()
    } finally {
      this.#turn = null
    }
  }
}
