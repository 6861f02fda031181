import type { DeliveryOutcome } from '../delivery/delivery.ts'
import { deliveryFailure } from '../delivery/failure.ts'
import type { Transport, TransportParts, TransportSession } from '../dispatch/transport.ts'
import type { OutboxEvent } from '../event/event.ts'
import { isRecord, recordProblem, refuseProblems, shown } from '../runtime/option-checks.ts'
import { describeError } from '../runtime/text.ts'
import {
  type KafkaProducerOptions,
  producerProblems,
  type ResolvedProducerOptions,
  resolveProducerOptions,
} from './producer-options.ts'
import { type Outgoing, Sender, type SendResult } from './sender.ts'
import { isTopicName } from './topic.ts'

/**
 * A transport that hands events to Kafka: `relay('to-kafka', { via: kafka({ producer }), order: 'aggregate' })`.
 *
 * What Kafka refuses for good (too large, a topic that does not exist) becomes a dead letter. While it is down events
 * stay in hand and no attempt is spent.
 *
 * @throws InvalidOptionsError with all problems of the options.
 */
export function kafka(options: KafkaProducerOptions): Transport {
  refuseProblems(
    'kafka',
    isRecord(options) ? producerProblems(options) : [recordProblem('the options', options)],
  )
  const resolved = resolveProducerOptions(options)
  return { open: (parts) => new KafkaSession(resolved, parts) }
}

const HANDLED: DeliveryOutcome = { kind: 'handled' }
const INTERRUPTED: DeliveryOutcome = { kind: 'interrupted' }

class KafkaSession implements TransportSession {
  readonly #options: ResolvedProducerOptions
  readonly #sender: Sender
  #prepared = new Map<OutboxEvent, Addressed>()

  constructor(options: ResolvedProducerOptions, parts: TransportParts) {
    this.#options = options
    this.#sender = new Sender({ ...options, ...parts, onOutage: (error) => parts.onOutage(error) })
    this.#sender.open()
  }

  async send(events: readonly OutboxEvent[], signal: AbortSignal): Promise<readonly DeliveryOutcome[]> {
    const prepared = this.#prepared
    this.#prepared = new Map()
    const addressed = events.map((event) => prepared.get(event) ?? addressedOf(event, this.#options))
    const results = await this.#sender.send(addressed.filter(isOutgoing), signal)
    let sent = 0
    return addressed.map((each) => {
      if (!isOutgoing(each)) return each
      sent += 1
      return outcomeOf(results[sent - 1])
    })
  }

  prepare(event: OutboxEvent): void {
    const addressed = addressedOf(event, this.#options)
    if (isOutgoing(addressed)) this.#sender.prepare(addressed)
    this.#prepared.set(event, addressed)
  }

  close(): Promise<void> {
    return this.#sender.close()
  }
}

type Addressed = ReturnType<typeof addressedOf>

function isOutgoing(addressed: Addressed): addressed is Outgoing {
  return 'record' in addressed
}

/** The event as it is sent, or why it cannot be. */
export function addressedOf(
  event: OutboxEvent,
  { recordOf }: Pick<ResolvedProducerOptions, 'recordOf'>,
): Outgoing | Extract<DeliveryOutcome, { readonly kind: 'failed' }> {
  try {
    const record = recordOf(event)
    if (record !== null && isTopicName(record.topic)) return { record, orderingKey: event.orderingKey }
    const found = record === null ? 'no topic' : `the topic ${shown(record.topic)}`
    return unaddressed(
      'NO_TOPIC',
      `The option topic has ${found} for events of type "${event.type}" (event ${event.eventId}), which Kafka cannot ` +
        'have. Correct it, deploy, and retry the dead letter.',
    )
  } catch (error) {
    const message = `Event ${event.eventId} could not be made a message: ${describeError(error)}`
    return unaddressed('NO_TOPIC', message)
  }
}

function unaddressed(code: string, message: string): Extract<DeliveryOutcome, { readonly kind: 'failed' }> {
  return { kind: 'failed', failure: deliveryFailure(code, message), retry: { kind: 'never' } }
}

function outcomeOf(result: SendResult | undefined): DeliveryOutcome {
  switch (result?.kind) {
    case 'sent':
      return HANDLED
    case 'refused':
      return { kind: 'failed', failure: result.failure, retry: { kind: 'never' } }
    case 'failed':
      return { kind: 'failed', failure: result.failure, retry: { kind: 'by-policy' } }
    case 'unsent':
    case undefined:
      return INTERRUPTED
    default:
      return result satisfies never
  }
}
