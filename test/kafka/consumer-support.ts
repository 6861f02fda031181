import { defineEvents, type WorkerEvent } from '../../src/index.ts'
import {
  type ConsumerCrash,
  createKafkaConsumer,
  type DeadRecord,
  type KafkaConsumer,
  type KafkaConsumerClient,
  type ReceivedBatch,
  type ReceivedMessage,
  type SequenceChecker,
} from '../../src/kafka/index.ts'
import { toMessage } from '../../src/kafka/record.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { event } from './support.ts'

export const events = defineEvents({ OrderPlaced: { stream: 'shop.order', aggregate: 'order', version: 2 } })
/** Pauses of these tests are short. */
export const clock = {
  ...systemClock,
  sleep: (ms: number, signal?: AbortSignal): Promise<void> => systemClock.sleep(Math.min(ms, 5), signal),
}

type RunOptions = Parameters<KafkaConsumerClient['run']>[0]

/** A client that never fetches: tests hand batches over themselves. */
export class FakeClient implements KafkaConsumerClient {
  each: RunOptions['eachBatch'] = async () => {}
  crash: (crash: ConsumerCrash) => void = () => {}
  isConnected = false
  underWay: Promise<void> | null = null
  begins: boolean | undefined
  commitsEveryMs: number | undefined
  /** Before it joins the group. */
  joining: Promise<void> = Promise.resolve()

  connect = async (): Promise<void> => void (this.isConnected = true)
  subscribe = async ({ fromBeginning }: { fromBeginning?: boolean }): Promise<void> =>
    void (this.begins = fromBeginning)
  /** As kafkajs does, it connects again if it is disconnected by then. */
  run = async (options: RunOptions): Promise<void> => {
    await this.joining
    this.isConnected = true
    this.each = (batch) => options.eachBatch(batch)
    this.commitsEveryMs = options.autoCommitInterval
  }
  /** As real ones do, it waits for the batch that is under way. */
  disconnect = async (): Promise<void> => {
    await this.underWay
    this.isConnected = false
  }
  on = (_: string, listener: (crash: ConsumerCrash) => void): void => void (this.crash = listener)
}

interface Setup {
  readonly on: () => unknown
  readonly setAside?: (dead: DeadRecord) => Promise<void>
  readonly fromBeginning?: boolean
  readonly sequence?: SequenceChecker
  readonly client?: () => FakeClient
}

interface Consuming {
  readonly consumer: KafkaConsumer
  readonly clients: readonly FakeClient[]
  readonly told: readonly WorkerEvent[]
}

/** A consumer of such clients, and what it told. */
export function setUp({
  on,
  setAside = async () => {},
  client: newClient = () => new FakeClient(),
  ...given
}: Setup): Consuming {
  const clients: FakeClient[] = []
  const told: WorkerEvent[] = []
  const consumer = createKafkaConsumer({
    name: 'c',
    consumer: () => {
      const client = newClient()
      clients.push(client)
      return client
    },
    topics: ['shop.order'],
    events,
    on: { OrderPlaced: on },
    deadLetters: { setAside },
    ...given,
    maxAttempts: 2,
    clock,
    observer: (each) => void told.push(each),
  })
  return { consumer, clients, told }
}

/** A batch of so many events of one key, and what was resolved of it. */
export function batchOf(
  count: number,
  heartbeat: () => Promise<void> = async () => {},
): ReceivedBatch & { readonly resolved: string[] } {
  const { headers, value, key } = toMessage(event(), 'o-1', 'payload')
  return received(
    Array.from({ length: count }, () => ({ key, value, headers })),
    heartbeat,
  )
}

/** A batch of these messages. */
export function received(
  messages: readonly Omit<ReceivedMessage, 'offset'>[],
  heartbeat: () => Promise<void> = async () => {},
): ReceivedBatch & { readonly resolved: string[] } {
  const resolved: string[] = []
  return {
    batch: {
      topic: 'shop.order',
      partition: 0,
      messages: messages.map((message, n) => ({ ...message, offset: String(n) })),
    },
    resolveOffset: (offset) => void resolved.push(offset),
    heartbeat,
    isRunning: () => true,
    isStale: () => false,
    resolved,
  }
}
