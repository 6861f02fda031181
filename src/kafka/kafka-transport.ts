import type { DeliveryOutcome } from '../delivery/delivery.ts'
import { deliveryFailure, type OwnFailureCode } from '../delivery/failure.ts'
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
import type { Outgoing } from './request.ts'
import { Sender, type SendResult } from './sender.ts'
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
    const addressed = inTurn(
      events,
      events.map((event) => prepared.get(event) ?? addressedOf(event, this.#options)),
    )
    const results = await this.#sender.send(addressed.filter(isOutgoing), signal)
    let sent = 0
    const outcomes = addressed.map((each) => {
      if (!isOutgoing(each)) return each
      sent += 1
      return outcomeOf(results[sent - 1])
    })
    return inTurn(events, outcomes)
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

type Unaddressed = Extract<DeliveryOutcome, { readonly kind: 'failed' }>
type Addressed = Outgoing | Unaddressed

function isOutgoing(each: Outgoing | DeliveryOutcome): each is Outgoing {
  return 'record' in each
}

/** What stands behind one of its key that is not sent waits for what becomes of that. */
function inTurn<Each extends Outgoing | DeliveryOutcome>(
  events: readonly OutboxEvent[],
  given: readonly Each[],
): readonly (Each | typeof INTERRUPTED)[] {
  const stopped = new Set<string>()
  return events.map(({ orderingKey }, index) => {
    if (stopped.has(orderingKey)) return INTERRUPTED
    const each = given[index] as Each
    if (!isOutgoing(each) && each.kind !== 'handled') stopped.add(orderingKey)
    return each
  })
}

/** The event as it is sent, or why it cannot be. */
export function addressedOf(
  event: OutboxEvent,
  { recordOf }: Pick<ResolvedProducerOptions, 'recordOf'>,
): Addressed {
  try {
    const record = recordOf(event)
    if (record === null) return misdirected('NO_TOPIC', 'topic has no topic', event)
    if (!isTopicName(record.topic)) {
      return misdirected('NO_TOPIC', `topic has ${shown(record.topic)}, which Kafka cannot have,`, event)
    }
    if (typeof record.key !== 'string') {
      return misdirected('NO_KEY', `key has returned ${shown(record.key)}, which is not text,`, event)
    }
    return { record, orderingKey: event.orderingKey }
  } catch (error) {
    return unaddressed(
      'NO_TOPIC',
      `Event ${event.eventId} could not be made a message: ${describeError(error)}`,
    )
  }
}

function misdirected(code: OwnFailureCode, what: string, { type, eventId }: OutboxEvent): Unaddressed {
  return unaddressed(
    code,
    `The option ${what} for events of type "${type}" (event ${eventId}). Correct it, deploy, and retry the dead letter.`,
  )
}

function unaddressed(code: OwnFailureCode, message: string): Unaddressed {
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
