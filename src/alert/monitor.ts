import type { Masking } from '../event/masking.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Ids } from '../runtime/ids.ts'
import { Outage } from '../runtime/outage.ts'
import { runPeriodically } from '../runtime/periodic.ts'
import type { Random } from '../runtime/random.ts'
import { RefusedError } from '../runtime/refused-error.ts'
import type { MonitorStore, MonitorTurn } from '../store/alert-store.ts'
import type { Alert } from './alert.ts'
import { AlertComposer } from './alert-composer.ts'
import type { ResolvedAlertOptions } from './alert-options.ts'
import { type LookParts, lookAndTell, type MonitorRound } from './look.ts'
import { type SinkFailure, SinkSender } from './sink-sender.ts'

/** Looks after the outbox and tells people, beside any number of others: of all of them one looks and tells at a time. */
export interface Monitor extends AsyncDisposable {
  /** Begins to look in the background, every `everyMs`. */
  start(): void
  /** Looks at everything once, now, tells what is to be told and says what it came to. */
  check(): Promise<MonitorRound>
  /** Ends it; what is being told has two seconds to be. Safe more than once. */
  stop(): Promise<void>
}

/** A monitor that a worker pokes. */
export interface PokedMonitor extends Monitor {
  /** Looks at the dead letters soon: there is a new one. Costs nothing here and now. */
  poke(): void
}

/** What a monitor is made of. */
export interface MonitorParts {
  openStore(): MonitorStore
  readonly holder: string
  readonly options: ResolvedAlertOptions
  readonly masking: Masking
  readonly clock: Clock
  readonly random: Random
  readonly ids: Ids
  /** Told of what fails; `during` is "monitor" or "alert". */
  onFailure(during: 'monitor' | 'alert', error: unknown): void
}

const JITTER = 0.1
/** Looks at dead letters alone are at least this far apart, of all workers together. */
const POKE_SPACING_MS = 250
const TURN_PAUSE_MS = 100
/** How long nobody looks after the one whose turn it was has vanished. It is extended while a look lasts. */
const TURN_MS = 15_000
/** How long to ask for a turn: as long as others may be kept by sinks that hang. */
const PATIENCE_MS = 60_000

/** For what is being told when it is stopped. Whatever is not told then, another monitor tells. */
const LAST_WORDS_MS = 2_000

/** Makes a monitor. It does nothing until it is started, poked or asked. */
export function createMonitor(parts: MonitorParts): PokedMonitor {
  return new OutboxMonitor(parts)
}

class OutboxMonitor implements PokedMonitor {
  readonly #parts: MonitorParts
  readonly #look: Omit<LookParts, 'tell'>
  readonly #senders: readonly { readonly sender: SinkSender; readonly rules: readonly string[] }[]
  readonly #store: MonitorStore
  readonly #outage: Outage
  readonly #stop = new AbortController()
  #loop: Promise<void> = Promise.resolve()
  #poked: Promise<void> | null = null
  #wanted = false
  /** Of the look that goes on, or the last one. */
  #failures: SinkFailure[] = []
  #stopped: Promise<void> | null = null

  constructor(parts: MonitorParts) {
    this.#parts = parts
    const { options, clock, random, ids, masking } = parts
    this.#store = parts.openStore()
    this.#outage = new Outage({ random, onBegin: (error) => parts.onFailure('monitor', error) })
    this.#senders = options.routes.map(({ sink, rules }, n) => ({
      rules,
      sender: new SinkSender({
        sink,
        name: sink.name ?? `sinks[${n}]`,
        clock,
        random,
        timeoutMs: options.timeoutMs,
        attempts: options.attempts,
        signal: this.#stop.signal,
        onFailure: (error, failure) => {
          this.#failures.push(failure)
          parts.onFailure('alert', error)
        },
      }),
    }))
    this.#look = {
      store: this.#store,
      options,
      composer: new AlertComposer({ options, masking, newId: () => ids.eventId() }),
    }
  }

  start(): void {
    const { clock, random, options } = this.#parts
    this.#loop = runPeriodically({
      everyMs: options.everyMs,
      jitter: JITTER,
      clock,
      random,
      signal: this.#stop.signal,
      immediately: true,
      run: async () => {
        await this.#takeTurn(true, this.#wholeEveryMs)
        this.#outage.succeeded()
      },
      onError: (error) => this.#failed(error),
    })
  }

  poke(): void {
    this.#wanted = true
    if (this.#poked !== null || this.#stop.signal.aborted) return
    this.#poked = this.#lookSoon().finally(() => {
      this.#poked = null
    })
  }

  async check(): Promise<MonitorRound> {
    const round = await this.#waitForTurn(true, 0)
    if (round !== null) return round
    throw new RefusedError(
      'monitor-busy',
      'Another monitor was at it all the time, so this one did not look. Try again later.',
    )
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#end()
    return this.#stopped
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #end(): Promise<void> {
    // A worker that stops may have made a dead letter with its last breath.
    if (this.#poked !== null) {
      const enough = new AbortController()
      await Promise.race([this.#poked, this.#parts.clock.sleep(LAST_WORDS_MS, enough.signal)])
      enough.abort()
    }
    this.#stop.abort()
    await this.#poked
    await this.#loop
    await this.#store.close()
  }

  async #lookSoon(): Promise<void> {
    while (this.#wanted && !this.#stop.signal.aborted) {
      this.#wanted = false
      try {
        await this.#waitForTurn(false, POKE_SPACING_MS)
      } catch (error) {
        // What is not told now is found by the next look at everything.
        this.#failed(error)
      }
    }
  }

  /** Asks for the turn until it gets it, or has no more patience. */
  async #waitForTurn(whole: boolean, everyMs: number): Promise<MonitorRound | null> {
    const { clock } = this.#parts
    const untilMs = clock.monotonicMs() + PATIENCE_MS
    while (!this.#stop.signal.aborted && clock.monotonicMs() <= untilMs) {
      const round = await this.#takeTurn(whole, everyMs)
      if (round !== null) return round
      await clock.sleep(TURN_PAUSE_MS, this.#stop.signal)
    }
    return null
  }

  async #takeTurn(whole: boolean, everyMs: number): Promise<MonitorRound | null> {
    const { holder, clock } = this.#parts
    const askedAtMs = clock.monotonicMs()
    const turn = await this.#store.takeMonitorTurn({
      holder,
      leaseMs: TURN_MS,
      whole,
      everyMs,
      wholeEveryMs: this.#wholeEveryMs,
    })
    return turn === null ? null : this.#lookWhile(turn, askedAtMs + TURN_MS)
  }

  /** Looks and tells, and keeps the turn meanwhile. A process that was frozen for longer than that tells no more. */
  async #lookWhile(turn: MonitorTurn, firstUntilMs: number): Promise<MonitorRound | null> {
    const { clock, random } = this.#parts
    const over = new AbortController()
    let untilMs = firstUntilMs
    const isOurs = (): boolean => clock.monotonicMs() < untilMs
    const kept = runPeriodically({
      everyMs: TURN_MS / 3,
      jitter: 0,
      clock,
      random,
      signal: over.signal,
      run: async () => {
        const askedAtMs = clock.monotonicMs()
        if (await this.#store.extendMonitorTurn(turn, TURN_MS)) untilMs = askedAtMs + TURN_MS
      },
      // What the database does not answer in time has lapsed: then nothing more is told, and nothing written.
      onError: () => undefined,
    })
    try {
      const failures: SinkFailure[] = []
      this.#failures = failures
      const look = await lookAndTell({ ...this.#look, tell: (alert) => this.#tell(alert, isOurs) }, turn)
      return look === null ? null : { ...look, failures: [...failures] }
    } finally {
      over.abort()
      await kept
    }
  }

  /** A little less than the pause between two tries: or a look that comes a moment too early would be left out. */
  get #wholeEveryMs(): number {
    return this.#parts.options.everyMs * (1 - 2 * JITTER)
  }

  /** To all sinks at the same time; the first that takes it is enough to go on. */
  #tell(alert: Alert, isOurs: () => boolean): Promise<boolean> {
    const offers = this.#senders
      .filter(({ rules }) => rules.includes(alert.rule))
      .map(({ sender }) => sender.offer(alert, isOurs))
    if (offers.length === 0) return Promise.resolve(true)
    return new Promise((resolve) => {
      for (const offer of offers) void offer.then((taken) => (taken ? resolve(true) : undefined))
      void Promise.all(offers).then((taken) => resolve(taken.includes(true)))
    })
  }

  #failed(error: unknown): void {
    this.#outage.failed(error)
  }
}
