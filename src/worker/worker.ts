import { CommitpostError, InvalidOptionsError } from '../runtime/errors.ts'
import { recordProblem, unknownOptionProblems, wholeNumberProblem } from '../runtime/option-checks.ts'
import { type WorkerParts, WorkerSession } from './session.ts'
import { stopOnSignals } from './signals.ts'
import { LONGEST_DRAIN_MS } from './worker-options.ts'

/** How a worker is stopped. */
export interface StopOptions {
  /**
   * How long to wait for running handlers before their signals are aborted, in milliseconds.
   * @default the worker's own `drainMs`
   */
  readonly drainMs?: number
}

/** Takes and runs the deliveries of its subscriptions, beside any number of others on any machine. */
export interface Worker extends AsyncDisposable {
  /** Its name in tables and logs. */
  readonly id: string
  /**
   * Registers the subscriptions and begins. Resolves when it is at work; calling it again is the same call. Rejects
   * when the database cannot be reached or refuses a subscription: then it can be called again.
   */
  start(): Promise<void>
  /**
   * Resolves when all its subscriptions have joined: ordered ones are served from then on. Rejects when the worker is
   * stopped before.
   */
  active(): Promise<void>
  /**
   * Claims no more, gives back what has not started, waits for running handlers, writes everything down and leaves.
   * Safe at any time and more than once; resolves when all of it is done. A stopped worker cannot be started again.
   */
  stop(options?: StopOptions): Promise<void>
  /** Looks for work at once, instead of at the next poll. */
  wake(): void
}

/** Makes a worker. It does nothing until it is started. */
export function createWorker(parts: WorkerParts): Worker {
  return new OutboxWorker(parts)
}

class OutboxWorker implements Worker {
  readonly #parts: WorkerParts
  #session: WorkerSession | null = null
  #starting: Promise<void> | null = null
  #stopping: Promise<void> | null = null
  #ignoreSignals: () => void = () => {}

  constructor(parts: WorkerParts) {
    this.#parts = parts
  }

  get id(): string {
    return this.#parts.id
  }

  start(): Promise<void> {
    if (this.#stopping !== null) return Promise.reject(stopped())
    this.#starting ??= this.#begin().catch((error: unknown) => {
      this.#starting = null
      throw error
    })
    return this.#starting
  }

  async active(): Promise<void> {
    await this.start()
    await this.#session?.active
  }

  stop(options: StopOptions = {}): Promise<void> {
    const problems = stopProblems(options)
    if (problems.length > 0) return Promise.reject(new InvalidOptionsError('worker.stop', problems))
    this.#stopping ??= this.#end(options.drainMs ?? this.#parts.options.drainMs)
    return this.#stopping
  }

  wake(): void {
    this.#session?.wake()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #begin(): Promise<void> {
    if (this.#parts.options.handleSignals) this.#ignoreSignals = stopOnSignals(this)
    try {
      this.#session = await WorkerSession.begin(this.#parts)
    } catch (error) {
      this.#ignoreSignals()
      throw error
    }
  }

  async #end(drainMs: number): Promise<void> {
    // A start that is under way is let come to its end, so that there is one thing to stop and not half of one.
    await this.#starting?.catch(() => {})
    await this.#session?.end(drainMs)
    this.#ignoreSignals()
  }
}

function stopProblems(options: StopOptions): readonly string[] {
  const problem = recordProblem('the options', options)
  if (problem !== null) return [problem]
  return [
    ...unknownOptionProblems(options, ['drainMs']),
    wholeNumberProblem('drainMs', options.drainMs, 0, LONGEST_DRAIN_MS),
  ].filter((each) => each !== null)
}

function stopped(): CommitpostError {
  return new CommitpostError(
    'INVALID_STATE',
    'This worker was stopped. Make a new one with outbox.worker(…).',
  )
}
