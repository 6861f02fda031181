import { setMaxListeners } from 'node:events'
import { withDeadline } from '../runtime/abort.ts'
import type { Clock } from '../runtime/clock.ts'
import { CommitpostError } from '../runtime/errors.ts'
import { jittered } from '../runtime/periodic.ts'
import { property } from '../runtime/property.ts'
import type { Random } from '../runtime/random.ts'
import { describeError } from '../runtime/text.ts'
import type { Alert, AlertSink } from './alert.ts'

/** Why a sink did not take an alert. */
export interface SinkFailure {
  /** The name of the sink. */
  readonly sink: string
  /** The key of the alert. */
  readonly alert: string
  /** What the last attempt failed with. */
  readonly error: string
}

/** How a sink is tried, and who is told that it failed. */
export interface SinkSenderParts {
  readonly sink: AlertSink
  /** How failures name it. */
  readonly name: string
  readonly clock: Clock
  readonly random: Random
  readonly timeoutMs: number
  readonly attempts: number
  readonly signal: AbortSignal
  onFailure(error: CommitpostError, failure: SinkFailure): void
}

interface Waiting {
  readonly alert: Alert
  readonly mayBeSent: () => boolean
  readonly resolve: (taken: boolean) => void
}

const MOST_WAITING = 100
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 5_000
const JITTER = 0.2

/**
 * Sends to one sink, one alert after the other, each with a time limit and a few attempts. When all of them fail, the
 * next that waits has one try, which shows whether the sink is back; if not, all others that wait have theirs together.
 * So a sink that hangs costs the time of one alert and two tries, however many wait, and none is given up untried.
 */
export class SinkSender {
  readonly #parts: SinkSenderParts
  readonly #waiting: Waiting[] = []
  #isSending = false

  constructor(parts: SinkSenderParts) {
    this.#parts = parts
    // Each of those that are tried together listens to it; Node would warn of a leak.
    setMaxListeners(0, parts.signal)
  }

  /**
   * Resolves with whether the sink took it. Never rejects. It is asked before each attempt whether it may still be
   * sent: by then it may be another's turn to tell it.
   */
  offer(alert: Alert, mayBeSent: () => boolean = () => true): Promise<boolean> {
    if (this.#waiting.length >= MOST_WAITING) {
      this.#failed(alert, new Error(`${MOST_WAITING} alerts wait for it already`))
      return Promise.resolve(false)
    }
    return new Promise((resolve) => {
      this.#waiting.push({ alert, mayBeSent, resolve })
      if (!this.#isSending) void this.#sendAll()
    })
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      if (!(await this.#hasFailed(next, this.#parts.attempts))) continue
      const probe = this.#waiting.shift()
      if (probe === undefined || !(await this.#hasFailed(probe, 1))) continue
      await Promise.all(this.#waiting.splice(0).map((each) => this.#hasFailed(each, 1)))
    }
    this.#isSending = false
  }

  /** Tells who offered it. What the sink refuses is no failure of the sink. */
  async #hasFailed(waiting: Waiting, attempts: number): Promise<boolean> {
    const outcome = await this.#send(waiting, attempts)
    waiting.resolve(outcome === 'taken')
    return outcome === 'failed'
  }

  async #send({ alert, mayBeSent }: Waiting, attempts: number): Promise<'taken' | 'refused' | 'failed'> {
    const { clock, random, signal } = this.#parts
    for (let attempt = 1; ; attempt += 1) {
      if (!mayBeSent()) return 'refused'
      const error = await this.#try(alert)
      if (error === null) return 'taken'
      const isRefused = property(error, 'permanent') === true
      if (attempt === attempts || isRefused || signal.aborted) {
        this.#failed(alert, error)
        return isRefused ? 'refused' : 'failed'
      }
      const askedMs = Number(property(error, 'retryAfterMs') ?? 0)
      const pauseMs = Math.max(FIRST_PAUSE_MS * 2 ** (attempt - 1), askedMs)
      await clock.sleep(jittered(Math.min(pauseMs, LONGEST_PAUSE_MS), JITTER, random), signal)
    }
  }

  async #try(alert: Alert): Promise<unknown> {
    const { sink, name, clock, timeoutMs, signal } = this.#parts
    try {
      // What a hanging sink does after its time is over is its own business: nobody waits for it.
      await withDeadline({ clock, timeoutMs, what: `the alert sink ${name}`, signal }, async (ending) =>
        sink.send(alert, ending),
      )
      return null
    } catch (error) {
      return error ?? new Error('it failed without a reason')
    }
  }

  #failed(alert: Alert, cause: unknown): void {
    const failure = { sink: this.#parts.name, alert: alert.key, error: describeError(cause) }
    const message = `The alert "${failure.alert}" could not be sent to ${failure.sink}: ${failure.error}`
    this.#parts.onFailure(new CommitpostError('ALERT_NOT_SENT', message), failure)
  }
}
