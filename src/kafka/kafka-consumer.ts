import type { DispatchedDelivery } from '../dispatch/attempt.ts'
import { createDispatcher, type EventDispatcher } from '../dispatch/dispatcher.ts'
import { CATCH_ALL, type HandlerMap } from '../dispatch/handler.ts'
import { traceHandlers } from '../dispatch/trace-handlers.ts'
import type { Catalogue } from '../event/catalogue.ts'
import { createMasking } from '../event/masking.ts'
import { logObserver } from '../observe/log-observer.ts'
import { type Logger, silentLogger } from '../observe/logger.ts'
import { combineObservers, type Observer } from '../observe/worker-events.ts'
import { linkSignals } from '../runtime/abort.ts'
import { type Clock, systemClock } from '../runtime/clock.ts'
import { CommitpostError, InvalidOptionsError, WorkerStoppingError } from '../runtime/errors.ts'
import { refuseProblems, shown } from '../runtime/option-checks.ts'
import { Outage } from '../runtime/outage.ts'
import { property } from '../runtime/property.ts'
import { type Random, systemRandom } from '../runtime/random.ts'
import { createClassify } from '../settle/classify.ts'
import { resolveRetryPolicy } from '../settle/retry-policy.ts'
import type { KafkaConsumerClient, ReceivedBatch, ReceivedMessage } from './client.ts'
import { consumerProblems, type KafkaConsumerOptions } from './consumer-options.ts'
import { consumerServices } from './consumer-services.ts'
import { readRecord } from './read-record.ts'
import { RecordHandler } from './record-handler.ts'

/** How a consumer is stopped. */
export interface ConsumerStopOptions {
  /**
   * How long a running handler may still take, in milliseconds.
   * @default 10_000
   */
  readonly drainMs?: number
}

/** Reads topics and runs the handlers of a subscription on what arrives. */
export interface KafkaConsumer extends AsyncDisposable {
  /** Connects, joins the group and begins. Rejects with the reason when that fails, and can be called again. */
  start(): Promise<void>
  /** Takes no more, lets what is running finish, commits what was handled and leaves the group. */
  stop(options?: ConsumerStopOptions): Promise<void>
}

/**
 * Makes a consumer that feeds messages of Kafka to the handlers of a subscription: with the same upcasting, inbox, retries
 * and traces as in a worker. Messages of a partition are handled one after the other, so that order per key holds. What
 * cannot be handled is set aside, and an offset is committed only for what was handled or set aside.
 *
 * @throws InvalidOptionsError with all problems of the options.
 */
export function createKafkaConsumer<C extends Catalogue, Tx = unknown>(
  options: KafkaConsumerOptions<C, Tx>,
): KafkaConsumer {
  refuseProblems(`the Kafka consumer ${shown(options?.name)}`, consumerProblems(options))
  const clock = options.clock ?? systemClock
  const logger = options.logger ?? silentLogger
  const observer = combineObservers([
    ...(logger === silentLogger ? [] : [logObserver(logger, createMasking(options.events))]),
    ...(options.observer === undefined ? [] : [options.observer]),
  ])
  const dispatcher = dispatcherOf(options, clock, logger, observer)
  const random = options.random ?? systemRandom
  const handler = handlerOf(options, dispatcher, { clock, random, observer })
  return new HandlingConsumer({ options, clock, random, observer, dispatcher, handler })
}

function dispatcherOf<C extends Catalogue, Tx>(
  options: KafkaConsumerOptions<C, Tx>,
  clock: Clock,
  logger: Logger,
  observer: Observer,
): EventDispatcher<DispatchedDelivery> {
  const { name, on, events, timeoutMs, middleware = [], tracing } = options
  return createDispatcher<DispatchedDelivery>({
    subscription: name,
    // Typed by the catalogue up to here; inside, names and handlers are what they are at run time.
    handlers: on as HandlerMap,
    middleware:
      tracing === undefined ? middleware : [traceHandlers(tracing, createMasking(events)), ...middleware],
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    clock,
    logger,
    observer,
    services: consumerServices(options),
    classify: createClassify(clock, options.classify),
    reader: { read: (event) => events.read(event) ?? event },
  })
}

function handlerOf<C extends Catalogue, Tx>(
  options: KafkaConsumerOptions<C, Tx>,
  dispatcher: EventDispatcher<DispatchedDelivery>,
  shared: Pick<ConsumerParts, 'clock' | 'random' | 'observer'>,
): RecordHandler {
  const { events, retry, maxAttempts, unhandled = 'skip' } = options
  const on: object = options.on
  return new RecordHandler({
    subscription: options.name,
    dispatcher,
    policy: resolveRetryPolicy({
      ...(retry === undefined ? {} : { backoff: retry }),
      ...(maxAttempts === undefined ? {} : { maxAttempts }),
    }),
    deadLetters: options.deadLetters,
    ...shared,
    read: (message, place) =>
      readRecord(message, place, { catalogue: events, envelope: options.envelope ?? null }),
    isSkipped: ({ type }) => {
      if (unhandled === 'dead' || Object.hasOwn(on, CATCH_ALL)) return false
      return !Object.hasOwn(on, events.findStored(type)?.name ?? type)
    },
    onArrived: (event) => options.sequence?.check(event),
  })
}

interface ConsumerParts {
  readonly options: Pick<
    KafkaConsumerOptions<Catalogue, never>,
    'consumer' | 'topics' | 'fromBeginning' | 'partitionsAtOnce' | 'deadLetters' | 'name'
  >
  readonly clock: Clock
  readonly random: Random
  readonly observer: Observer
  readonly dispatcher: EventDispatcher<DispatchedDelivery>
  readonly handler: RecordHandler
}

/** What was handled since then comes again after a crash, if it is of the same batch. */
const COMMIT_EVERY_MS = 1_000
/** How often the group is told that a long handler is still at work; the client leaves out those that are too many. */
const HEARTBEAT_MS = 500

class HandlingConsumer implements KafkaConsumer {
  readonly #parts: ConsumerParts
  #client: KafkaConsumerClient | null = null
  #stopping = new AbortController()
  #joining: Promise<void> = Promise.resolve()
  #rejoining: Promise<void> | null = null

  constructor(parts: ConsumerParts) {
    this.#parts = parts
  }

  async start(): Promise<void> {
    if (this.#client !== null || this.#rejoining !== null) {
      const { name } = this.#parts.options
      throw new CommitpostError('INVALID_STATE', `The Kafka consumer "${name}" is started already.`)
    }
    this.#stopping = new AbortController()
    const joining = this.#join()
    this.#joining = joining.catch(() => {})
    await joining
  }

  async stop({ drainMs = 10_000 }: ConsumerStopOptions = {}): Promise<void> {
    const { clock, dispatcher, options } = this.#parts
    this.#stopping.abort()
    // A client that is disconnected while it starts may go on and read, for nobody.
    await this.#joining
    await this.#rejoining
    const client = this.#client
    if (client === null) return
    this.#client = null
    const stopped = new AbortController()
    void clock.sleep(drainMs, stopped.signal).then(() => {
      if (!stopped.signal.aborted) dispatcher.interrupt(new WorkerStoppingError())
    })
    await client.disconnect()
    stopped.abort()
    await options.deadLetters.close?.()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #join(): Promise<void> {
    const { options } = this.#parts
    const client = options.consumer()
    this.#client = client
    this.#listen(client)
    try {
      const beginning = beginningOf(client, options)
      await client.connect()
      await client.subscribe({ topics: [...options.topics], ...beginning })
      await client.run({
        ...committingOf(client),
        // Only what is resolved is committed, and only what was handled or set aside is resolved.
        eachBatchAutoResolve: false,
        partitionsConsumedConcurrently: options.partitionsAtOnce ?? 4,
        eachBatch: (received) => this.#handleBatch(received),
      })
    } catch (error) {
      this.#client = null
      await client.disconnect().catch(() => {})
      throw error
    }
  }

  #listen(client: KafkaConsumerClient): void {
    if (isOfConfluent(client)) return
    client.on?.('consumer.crash', ({ payload }) => this.#crashed(client, payload.error, payload.restart))
  }

  #crashed(client: KafkaConsumerClient, error: unknown, restarts: boolean): void {
    const { observer, options } = this.#parts
    if (this.#client !== client || this.#stopping.signal.aborted) return
    observer({ kind: 'error', during: 'consume', error, subscription: options.name })
    if (restarts) return
    this.#rejoining ??= this.#rejoin(client, error).finally(() => {
      this.#rejoining = null
    })
  }

  /** A client that has given up would leave its partitions to nobody, without a word. */
  async #rejoin(crashed: KafkaConsumerClient, crash: unknown): Promise<void> {
    const { clock, random } = this.#parts
    const outage = new Outage({ random, onBegin: () => {} })
    this.#client = null
    await crashed.disconnect().catch(() => {})
    for (let pauseMs = outage.failed(crash); ; ) {
      await clock.sleep(pauseMs, this.#stopping.signal)
      if (this.#stopping.signal.aborted) return
      try {
        return await this.#join()
      } catch (error) {
        pauseMs = outage.failed(error)
      }
    }
  }

  async #handleBatch(received: ReceivedBatch): Promise<void> {
    const { batch, resolveOffset, heartbeat, isRunning, isStale } = received
    for (const message of batch.messages) {
      if (!isRunning() || isStale() || this.#stopping.signal.aborted) return
      const isDone = await this.#handle(message, received)
      if (!isDone) return
      resolveOffset(message.offset)
      await heartbeat()
      await received.commitOffsetsIfNecessary?.()
    }
  }

  /** Handles a message and meanwhile tells the group that somebody is here. Rejects once the partition is another's. */
  async #handle(message: ReceivedMessage, { batch, heartbeat }: ReceivedBatch): Promise<boolean> {
    const { handler } = this.#parts
    const linked = linkSignals(this.#stopping.signal)
    const done = new AbortController()
    const beats = this.#beat(heartbeat, done.signal).catch((error: unknown) => {
      linked.abort()
      handler.interrupt(message, new WorkerStoppingError())
      return { error }
    })
    const isDone = await handler.handle(message, batch, linked.signal).finally(() => {
      done.abort()
      linked.unlink()
    })
    const lost = await beats
    if (lost !== undefined) throw lost.error
    return isDone
  }

  async #beat(heartbeat: () => Promise<void>, done: AbortSignal): Promise<undefined> {
    for (;;) {
      await this.#parts.clock.sleep(HEARTBEAT_MS, done)
      if (done.aborted) return undefined
      await heartbeat()
    }
  }
}

function isOfConfluent(client: KafkaConsumerClient): boolean {
  return typeof property(client, 'assignment') === 'function'
}

/** Confluent's client commits every few seconds by itself; kafkajs only after each batch, unless it is told. */
function committingOf(client: KafkaConsumerClient): { readonly autoCommitInterval?: number } {
  return isOfConfluent(client) ? {} : { autoCommitInterval: COMMIT_EVERY_MS }
}

/** Where to begin, as the client takes it. */
function beginningOf(
  client: KafkaConsumerClient,
  { fromBeginning, name }: ConsumerParts['options'],
): { readonly fromBeginning?: boolean } {
  if (!isOfConfluent(client)) return { fromBeginning: fromBeginning ?? true }
  if (fromBeginning === undefined) return {}
  throw new InvalidOptionsError(`the Kafka consumer ${shown(name)}`, [
    'fromBeginning is for kafkajs; this client takes it in its own configuration: ' +
      'kafka.consumer({ kafkaJS: { groupId, fromBeginning } })',
  ])
}
