import type { NewEvent } from '../../event/event.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { AttemptInfo, Observer, WorkerEvent } from '../worker-events.ts'
import type { Family } from './exposition.ts'
import { Counter, type Distribution, Histogram } from './instruments.ts'
import type { BoundedLabels } from './labels.ts'

const HANDLER_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
const LAG_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 86_400]
const CLAIM_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30]
const CLAIM_SIZES = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000]
const ATTEMPTS = [1, 2, 3, 4, 5, 7, 10, 15, 20]

/** What is counted of each kind of event; of some, nothing. */
type Takers = {
  readonly [Kind in WorkerEvent['kind']]?: (event: Extract<WorkerEvent, { readonly kind: Kind }>) => void
}

type Result = 'done' | 'retry' | 'dead'

/** The series of one stream and event type, looked up once per attempt. */
interface AttemptSeries {
  readonly stream: string
  readonly eventType: string
  readonly handler: Distribution
  readonly lag: Distribution
  readonly attempts: Distribution
}

/** What the workers and publishers of this process did since it began. */
export class WorkerMetrics {
  readonly #labels: BoundedLabels
  readonly #clock: Clock
  readonly #series = new Map<string, AttemptSeries>()
  readonly #processed = new Counter({
    name: 'processed_total',
    help: 'Attempts that were settled, by what they came to: done, retry or dead.',
    labels: ['stream', 'result'],
  })
  readonly #handler = new Histogram(
    {
      name: 'handler_duration_seconds',
      help: 'How long handlers took, whether they succeeded or not.',
      labels: ['stream', 'eventType'],
    },
    HANDLER_SECONDS,
  )
  readonly #lag = new Histogram(
    {
      name: 'delivery_lag_seconds',
      help: 'From the writing of an event, by the clock of the database, to its delivery being done, by the clock of the worker.',
      labels: ['stream'],
    },
    LAG_SECONDS,
  )
  readonly #attempts = new Histogram(
    {
      name: 'delivery_attempts',
      help: 'How many attempts deliveries had taken when they were done or dead.',
      labels: ['stream'],
    },
    ATTEMPTS,
  )
  readonly #deadLetters = new Counter({
    name: 'dead_letters_total',
    help: 'Deliveries that failed for good.',
    labels: ['stream', 'eventType'],
  })
  readonly #released = new Counter({
    name: 'released_total',
    help: 'Deliveries given back with their attempt: interrupted by a stop, or postponed for newer code.',
    labels: ['stream', 'why'],
  })
  readonly #leaseLosses = new Counter({
    name: 'lease_losses_total',
    help: 'Attempts whose result was not written, because another worker held or had settled the delivery.',
    labels: ['stream'],
  })
  readonly #finishedLate = new Counter({
    name: 'finished_late_total',
    help: 'Handlers that came back after their timeout or interruption.',
    labels: ['stream', 'after'],
  })
  readonly #recovered = new Counter({
    name: 'recovered_total',
    help: 'Deliveries taken back from workers that vanished.',
    labels: ['subscription'],
  })
  readonly #claimSize = new Histogram(
    { name: 'claim_size', help: 'Deliveries taken by one claim.', labels: ['subscription'] },
    CLAIM_SIZES,
  )
  readonly #claimSeconds = new Histogram(
    { name: 'claim_duration_seconds', help: 'How long claims took.', labels: ['subscription'] },
    CLAIM_SECONDS,
  )
  readonly #published = new Counter({
    name: 'published_total',
    help: 'Events written by this process, those of transactions that rolled back afterwards included.',
    labels: ['stream', 'eventType'],
  })
  readonly #unmatched = new Counter({
    name: 'unmatched_total',
    help: 'Events reported because no subscription takes them.',
    labels: ['stream'],
  })
  readonly #retained = new Counter({
    name: 'retained_total',
    help: 'Events that retention let go, by policy and by what became of them: deleted or archived.',
    labels: ['policy', 'result'],
  })
  readonly #errors = new Counter({
    name: 'worker_errors_total',
    help: 'Failures around deliveries, such as a claim that could not reach the database.',
    labels: ['during'],
  })
  #running = 0
  readonly #takers: Takers = {
    started: () => {
      this.#running += 1
    },
    stopped: () => {
      this.#running -= 1
    },
    claimed: ({ subscription, count, durationMs }) => {
      const label = this.#labels.subscription.of(subscription)
      this.#claimSize.observe(this.#claimSize.at(label), count)
      this.#claimSeconds.observe(this.#claimSeconds.at(label), durationMs / 1_000)
    },
    handled: (event) => this.#handled(event),
    retried: (event) => void this.#settled(event, 'retry'),
    dead: (event) => this.#died(event),
    released: ({ event, why }) => this.#released.add(1, this.#labels.stream.of(event.stream), why),
    leaseLost: ({ event }) => this.#leaseLosses.add(1, this.#labels.stream.of(event.stream)),
    finishedLate: ({ event, after }) =>
      this.#finishedLate.add(1, this.#labels.stream.of(event.stream), after),
    recovered: ({ subscription, count }) =>
      this.#recovered.add(count, this.#labels.subscription.of(subscription)),
    unmatched: ({ event }) => this.#unmatched.add(1, this.#labels.stream.of(event.stream)),
    retained: ({ policy, deleted, archived }) => {
      if (deleted > 0) this.#retained.add(deleted, policy, 'deleted')
      if (archived > 0) this.#retained.add(archived, policy, 'archived')
    },
    error: ({ during }) => this.#errors.add(1, during),
  }

  constructor(labels: BoundedLabels, clock: Clock) {
    this.#labels = labels
    this.#clock = clock
  }

  /** Takes note of what a worker tells. */
  readonly observer: Observer = (event) => {
    // The table is keyed by kind, which TypeScript cannot follow through an index.
    const take = this.#takers[event.kind] as ((event: WorkerEvent) => void) | undefined
    take?.(event)
  }

  /** Takes note of events that were written. */
  readonly published = (events: readonly NewEvent[]): void => {
    for (const { stream, type } of events) {
      this.#published.add(1, this.#labels.stream.of(stream), this.#labels.eventType.of(type))
    }
  }

  families(): readonly Family[] {
    return [
      this.#processed.family(),
      this.#handler.family(),
      this.#lag.family(),
      this.#attempts.family(),
      this.#deadLetters.family(),
      this.#released.family(),
      this.#leaseLosses.family(),
      this.#finishedLate.family(),
      this.#recovered.family(),
      this.#claimSize.family(),
      this.#claimSeconds.family(),
      this.#published.family(),
      this.#unmatched.family(),
      this.#retained.family(),
      this.#errors.family(),
      {
        name: 'workers_running',
        type: 'gauge',
        help: 'Workers of this process that were started and have not stopped.',
        samples: [{ suffix: '', labels: [], value: this.#running }],
      },
    ]
  }

  #handled(event: AttemptInfo & { readonly durationMs: number }): void {
    const series = this.#settled(event, 'done')
    const lagMs = this.#clock.now().getTime() - event.event.createdAt.getTime()
    // Two clocks that differ must not make it negative.
    this.#lag.observe(series.lag, Math.max(0, lagMs) / 1_000)
    this.#attempts.observe(series.attempts, event.attempt)
  }

  #died(event: AttemptInfo & { readonly durationMs: number }): void {
    const series = this.#settled(event, 'dead')
    this.#deadLetters.add(1, series.stream, series.eventType)
    this.#attempts.observe(series.attempts, event.attempt)
  }

  #settled(event: AttemptInfo & { readonly durationMs: number }, result: Result): AttemptSeries {
    const series = this.#seriesOf(event)
    this.#processed.add(1, series.stream, result)
    // One that crashed its worker has no duration that anybody knows.
    if (event.durationMs > 0) this.#handler.observe(series.handler, event.durationMs / 1_000)
    return series
  }

  #seriesOf({ event }: AttemptInfo): AttemptSeries {
    const stream = this.#labels.stream.of(event.stream)
    const eventType = this.#labels.eventType.of(event.type)
    const key = `${stream}\u001f${eventType}`
    const found = this.#series.get(key)
    if (found !== undefined) return found
    const made: AttemptSeries = {
      stream,
      eventType,
      handler: this.#handler.at(stream, eventType),
      lag: this.#lag.at(stream),
      attempts: this.#attempts.at(stream),
    }
    this.#series.set(key, made)
    return made
  }
}
