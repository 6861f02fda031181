import type { DeliveryOutcome } from '../../src/delivery/delivery.ts'
import type { TransportSession } from '../../src/dispatch/transport.ts'
import type { OutboxEvent } from '../../src/index.ts'
import {
  type KafkaMessage,
  type KafkaProducer,
  type KafkaProducerOptions,
  type KafkaTopicMessages,
  kafka,
} from '../../src/kafka/index.ts'
import { type Clock, systemClock } from '../../src/runtime/clock.ts'

/** An event as the queue hands it over. */
export function event(changes: Partial<OutboxEvent> = {}): OutboxEvent {
  return {
    eventId: '01890a5d-ac96-774b-bcce-b302099a8057',
    position: '7',
    stream: 'shop.order',
    type: 'OrderPlaced',
    schemaVersion: 2,
    aggregateType: 'order',
    aggregateId: 'o-1',
    orderingKey: 'order:o-1',
    sequence: 3,
    payload: { amount: 1 },
    headers: {},
    occurredAt: new Date('2026-05-01T10:00:00.000Z'),
    createdAt: new Date('2026-05-01T10:00:01.000Z'),
    ...changes,
  }
}

/** What a broker says, as kafkajs throws it. */
export function brokerError(code: number, type: string): Error {
  return Object.assign(new Error(`the broker says ${type}`), { name: 'KafkaJSProtocolError', type, code })
}

export const unreachable = (): Error =>
  Object.assign(new Error('connect ECONNREFUSED'), { name: 'KafkaJSConnectionError', code: 'ECONNREFUSED' })

/** Events are sent as texts. */
interface Sent extends KafkaMessage {
  readonly key: string
  readonly value: string
  readonly headers: Readonly<Record<string, string>>
}

/** A broker in memory, and all producers that were made for it. */
export class FakeBroker {
  readonly written: (Sent & { readonly topic: string })[] = []
  readonly requests: number[] = []
  made = 0
  open = 0
  /** Decides what becomes of a request; what it throws is the answer. */
  answer: (batch: readonly KafkaTopicMessages[]) => void | Promise<void> = () => {}
  connecting: () => void | Promise<void> = () => {}

  readonly producer = (): KafkaProducer => {
    this.made += 1
    let isUsed = false
    return {
      connect: async () => {
        await this.connecting()
        this.open += 1
        isUsed = true
      },
      sendBatch: async ({ topicMessages }) => {
        this.requests.push(topicMessages.reduce((sum, { messages }) => sum + messages.length, 0))
        await this.answer(topicMessages)
        for (const { topic, messages } of topicMessages) {
          this.written.push(...messages.map((message) => ({ ...(message as Sent), topic })))
        }
      },
      disconnect: async () => {
        if (isUsed) this.open -= 1
        isUsed = false
      },
    }
  }
}

/** Outages of tests end at once. */
export const clock: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(ms > 1_000 ? ms : 0, signal),
}

/** How each ended. */
export function kinds(outcomes: readonly DeliveryOutcome[]): readonly string[] {
  return outcomes.map(({ kind }) => kind)
}

/** Waits for something, turn by turn. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

/** A signal that does not abort. */
export const never: AbortSignal = new AbortController().signal

/** A session of the transport to a broker in memory, and what it has told of outages. */
export function sessionOf(
  broker: FakeBroker,
  options: Partial<KafkaProducerOptions> = {},
): TransportSession & { readonly told: unknown[] } {
  const told: unknown[] = []
  const parts = {
    subscription: 's',
    clock,
    random: () => 0.5,
    onOutage: (error: unknown) => told.push(error),
  }
  const session = kafka({ producer: broker.producer, ...options }).open(parts)
  return { send: (events, signal) => session.send(events, signal), close: () => session.close(), told }
}

/** Events of keys of their own, numbered. */
export const numbered = (
  count: number,
  changes: (n: number) => Partial<OutboxEvent> = () => ({}),
): OutboxEvent[] =>
  Array.from({ length: count }, (_, n) =>
    event({ aggregateId: `a${n}`, orderingKey: `k${n}`, payload: { n }, ...changes(n) }),
  )
/** What was written, in its order. */
export const values = (broker: FakeBroker): readonly string[] => broker.written.map(({ value }) => value)
