import type { Catalogue } from '../event/catalogue.ts'
import { defaultOrderingKey, type EventHeaders, type NewEvent, type OutboxEvent } from '../event/event.ts'
import type { EventBus } from '../publish/event-bus.ts'
import { createPublisher, publisherProblems } from '../publish/publisher.ts'
import { Mutex } from '../queue/mutex.ts'
import { type Clock, systemClock } from '../runtime/clock.ts'
import { CommitpostError } from '../runtime/errors.ts'
import type { Ids } from '../runtime/ids.ts'
import {
  isRecord,
  methodsProblem,
  recordProblem,
  refuseProblems,
  wholeNumberProblem,
} from '../runtime/option-checks.ts'
import { type Random, systemRandom } from '../runtime/random.ts'
import type { PublishStore } from '../store/publish-store.ts'
import { addressedOf } from './kafka-transport.ts'
import { type KafkaProducerOptions, producerProblems, resolveProducerOptions } from './producer-options.ts'
import type { Outgoing } from './request.ts'
import { Sender, type SendResult } from './sender.ts'

/** What stands where other buses take a transaction. */
export type NoTransaction = null | undefined

/** What a Kafka bus is made of. */
export interface KafkaEventBusOptions<C extends Catalogue> extends KafkaProducerOptions {
  /** The catalogue: `defineEvents({ … })`. */
  readonly events: C
  /**
   * How long `publish` may take in all, in milliseconds.
   * @default 60_000
   */
  readonly publishTimeoutMs?: number
  /** The largest payload, in bytes of JSON. @default 1_048_576 */
  readonly maxPayloadBytes?: number
  /** Headers for every event published from here, such as the current trace. */
  readonly ambientHeaders?: () => EventHeaders
  /** Time, for tests. */
  readonly clock?: Clock
  /** Chance, for tests. */
  readonly random?: Random
  /** Identities, for tests. */
  readonly ids?: Pick<Ids, 'eventId'>
}

/**
 * Publishes to Kafka directly, for callers that have no transaction to be atomic with: `bus.publish(null, …)`. It takes no
 * transaction: written with your rows, an event belongs into the outbox, and a relay brings it to Kafka.
 *
 * Unlike the outbox it cannot take several events or none: where `publishAll` fails, some may be there. Run it again with
 * the same event ids, and let consumers de-duplicate by them. It numbers nothing: there is no `sequence`.
 */
export interface KafkaEventBus<C extends Catalogue> extends EventBus<C, NoTransaction>, AsyncDisposable {
  /** Disconnects. */
  close(): Promise<void>
}

const OWN_OPTION_NAMES: readonly string[] = [
  'events',
  'publishTimeoutMs',
  'maxPayloadBytes',
  'ambientHeaders',
  'clock',
  'random',
  'ids',
]

/** Makes a bus that publishes to Kafka. Connects when it first publishes. */
export function createKafkaEventBus<C extends Catalogue>(options: KafkaEventBusOptions<C>): KafkaEventBus<C> {
  refuseProblems('the Kafka event bus', busProblems(options))
  const { clock = systemClock, random = systemRandom, events, publishTimeoutMs = 60_000 } = options
  const resolved = resolveProducerOptions(options)
  const sender = new Sender({ ...resolved, clock, random, onOutage: () => {} })
  sender.open()
  const taking = new Mutex()
  const store: PublishStore<object> = {
    assertInTransaction: async () => {},
    insertEvents: async (_, given) => {
      const outgoing = given.map((event) => addressed(event, clock, resolved.recordOf))
      const giveUp = new AbortController()
      const sent = new AbortController()
      void clock.sleep(publishTimeoutMs, sent.signal).then(() => giveUp.abort())
      // One after the other: a producer that fails is replaced, and would take others' messages with it.
      const results = await taking.run(() => sender.send(outgoing, giveUp.signal))
      sent.abort()
      refuseUnsent(given, results)
      return { inserted: given.length }
    },
  }
  const publisher = createPublisher<C, object>({ ...options, catalogue: events, store })
  const close = (): Promise<void> => sender.close()
  return {
    publish: async (tx, name, input) => {
      refuseTransaction(tx, 'publish')
      return publisher.publish(IN_PLACE_OF_ONE, name, input)
    },
    publishAll: async (tx, inputs, given) => {
      refuseTransaction(tx, 'publishAll')
      return publisher.publishAll(IN_PLACE_OF_ONE, inputs, given)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** The publisher insists on a transaction; here there is none on purpose. */
const IN_PLACE_OF_ONE = {}

function busProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the options', options)]
  return [
    ...producerProblems(options, OWN_OPTION_NAMES),
    methodsProblem('events', options['events'] ?? null, ['prepare', 'read']),
    wholeNumberProblem('publishTimeoutMs', options['publishTimeoutMs'], 1, 86_400_000),
    methodsProblem('clock', options['clock'], ['now', 'monotonicMs', 'sleep']),
    ...publisherProblems(options),
  ]
}

function refuseTransaction(tx: unknown, operation: string): void {
  if (tx === null || tx === undefined) return
  throw new CommitpostError(
    'DUAL_WRITE',
    `${operation} was given a transaction, but Kafka cannot take part in it: if one of the two fails, your rows and the ` +
      'event differ for ever. Nothing was sent. Publish to an outbox in that transaction, outbox.publish(tx, …), and let ' +
      'relay(name, { via: kafka({ … }) }) bring it to Kafka; or, if there are no rows, pass null.',
  )
}

function addressed(
  event: NewEvent,
  clock: Clock,
  recordOf: Parameters<typeof addressedOf>[1]['recordOf'],
): Outgoing {
  const found = addressedOf(withoutRow(event, clock.now()), { recordOf })
  if ('record' in found) return found
  throw new CommitpostError('BROKER_REFUSED', `Nothing was sent. ${found.failure.message}`)
}

/** The event as handlers know it, without what only a database gives. */
function withoutRow(event: NewEvent, now: Date): OutboxEvent {
  const { payloadJson, sequenced: _, ...rest } = event
  return {
    ...rest,
    position: '0',
    sequence: null,
    orderingKey: event.orderingKey ?? defaultOrderingKey(event.aggregateType, event.aggregateId),
    payload: JSON.parse(payloadJson),
    occurredAt: event.occurredAt ?? now,
    createdAt: now,
  }
}

function refuseUnsent(events: readonly NewEvent[], results: readonly SendResult[]): void {
  const missing = events.filter((_, index) => results[index]?.kind !== 'sent')
  if (missing.length === 0) return
  const ids = missing.map(({ eventId }) => eventId).join(', ')
  const refusal = results.find((result) => 'failure' in result)
  if (refusal !== undefined && 'failure' in refusal) {
    throw new CommitpostError(
      'BROKER_REFUSED',
      `Kafka did not take the events ${ids}: ${refusal.failure.code}, ${refusal.failure.message}`,
    )
  }
  throw new CommitpostError(
    'BROKER_UNAVAILABLE',
    `Kafka did not confirm the events ${ids} in time. They may be there all the same: publish them again with the same ` +
      'event ids, and let consumers de-duplicate by them.',
  )
}
