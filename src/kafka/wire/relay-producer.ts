import { type Clock, systemClock } from '../../runtime/clock.ts'
import { isRecord, recordProblem, refuseProblems } from '../../runtime/option-checks.ts'
import type { KafkaMessage, KafkaProducer, KafkaTopicMessages } from '../client.ts'
import { Cluster } from './cluster.ts'
import { type EncodedMessage, MessageEncoder } from './message-encoder.ts'
import { untilReady, worstOf } from './not-yet.ts'
import {
  type PartitionBatch,
  type ProducerIdentity,
  produceRequest,
  type Refusal,
  refusalsIn,
} from './produce-request.ts'
import { addressOf, type RelayProducerOptions, relayProducerProblems } from './relay-producer-options.ts'
import { API, type BrokerAddress, initProducerIdRequest, readProducerIdentity } from './requests.ts'
import { WireConnectionError, WireError } from './wire-error.ts'

const SEQUENCES = 2 ** 31

type OnWritten = (messages: readonly EncodedMessage[]) => void

/**
 * A producer that does only what a relay asks of one, at a fraction of what kafkajs takes for a message: idempotent, all
 * replicas, keys where Java puts them, no compression. For Kafka 2.1 and later.
 *
 * `kafka({ producer: () => relayProducer({ brokers: ['kafka-1:9092'] }) })`
 *
 * @throws InvalidOptionsError with all problems of the options.
 */
export function relayProducer(options: RelayProducerOptions): KafkaProducer {
  refuseProblems(
    'relayProducer',
    isRecord(options) ? relayProducerProblems(options) : [recordProblem('the options', options)],
  )
  return new RelayProducer(options, systemClock)
}

/** It repairs nothing: after any failure whoever uses it makes a new one. */
class RelayProducer implements KafkaProducer {
  readonly #cluster: Cluster
  readonly #clock: Clock
  readonly #encoder = new MessageEncoder()
  /** By topic, then by partition: the number of the next message. */
  readonly #sequences = new Map<string, number[]>()
  #identity: ProducerIdentity | null = null
  #withoutKey = 0
  /** Rejects once one has failed. */
  #last: Promise<void> = Promise.resolve()

  constructor(options: RelayProducerOptions, clock: Clock) {
    const { clientId = 'commitpost', ssl = false, sasl = null, connectionTimeout = 5_000 } = options
    this.#clock = clock
    this.#cluster = new Cluster({
      brokers: options.brokers.map((broker) => addressOf(broker) as BrokerAddress),
      clientId,
      ssl: typeof ssl === 'object' ? ssl : ssl ? {} : null,
      sasl,
      connectWithinMs: connectionTimeout,
      clock,
    })
  }

  isIdempotent(): boolean {
    return true
  }

  async connect(): Promise<void> {
    this.#identity = await untilReady(this.#clock, async () =>
      readProducerIdentity(await this.#cluster.ask(API.initProducerId, initProducerIdRequest())),
    )
  }

  prepare(message: KafkaMessage): EncodedMessage {
    return this.#encoder.encode(message)
  }

  sendBatch({ topicMessages }: { topicMessages: KafkaTopicMessages[] }): Promise<void> {
    const topics = new Map<string, EncodedMessage[]>()
    for (const { topic, messages } of topicMessages) {
      const encoded = messages.map((message) => this.prepare(message))
      topics.set(topic, [...(topics.get(topic) ?? []), ...encoded])
    }
    return this.sendPrepared(topics)
  }

  /** One after the other: a request behind one that failed must not be written. */
  sendPrepared(
    topics: ReadonlyMap<string, readonly EncodedMessage[]>,
    onWritten: OnWritten = () => undefined,
  ): Promise<void> {
    const sent = this.#last.then(() => this.#send(topics, onWritten))
    this.#last = sent.catch(() => {
      throw new WireConnectionError('An earlier request of this producer failed')
    })
    this.#last.catch(() => undefined)
    return sent
  }

  async disconnect(): Promise<void> {
    this.#cluster.close()
  }

  /** A leader may have moved: what the old one refused is sent again under the same numbers. */
  async #send(topics: ReadonlyMap<string, readonly EncodedMessage[]>, onWritten: OnWritten): Promise<void> {
    let open: readonly PartitionBatch[] = await this.#numbered(topics)
    await untilReady(this.#clock, async () => {
      const requests = [...(await this.#byLeader(open))]
      // All of them are waited for: of each it is known then whether it was written.
      const rounds = await Promise.all(
        requests.map(([leader, each]) => this.#produce(leader, each, onWritten)),
      )
      open = rounds.flatMap(({ unwritten }) => unwritten)
      const worst = worstOf(rounds.flatMap(({ failure }) => failure ?? []))
      if (worst !== null) throw worst
    })
  }

  async #numbered(
    topics: ReadonlyMap<string, readonly EncodedMessage[]>,
  ): Promise<readonly PartitionBatch[]> {
    const batches: PartitionBatch[] = []
    for (const [topic, messages] of topics) {
      const leaders = await this.#cluster.leaders(topic)
      batches.push(...this.#batchesOf(topic, messages, leaders.length))
    }
    return batches
  }

  async #byLeader(
    batches: readonly PartitionBatch[],
  ): Promise<ReadonlyMap<number, readonly PartitionBatch[]>> {
    const requests = new Map<number, PartitionBatch[]>()
    for (const batch of batches) {
      const leaders = await this.#cluster.leaders(batch.topic)
      const leader = leaders[batch.partition] as number
      const request = requests.get(leader)
      if (request === undefined) requests.set(leader, [batch])
      else request.push(batch)
    }
    return requests
  }

  #batchesOf(topic: string, messages: readonly EncodedMessage[], count: number): readonly PartitionBatch[] {
    const partitions: EncodedMessage[][] = Array.from({ length: count }, () => [])
    for (const message of messages) partitions[this.#partitionOf(message, count)]?.push(message)
    const batches: PartitionBatch[] = []
    for (const [partition, chosen] of partitions.entries()) {
      if (chosen.length === 0) continue
      const firstSequence = this.#take(topic, partition, chosen.length)
      batches.push({ topic, partition, messages: chosen, firstSequence })
    }
    return batches
  }

  #partitionOf({ keyHash }: EncodedMessage, partitions: number): number {
    if (keyHash !== null) return (keyHash & 0x7f_ff_ff_ff) % partitions
    this.#withoutKey = (this.#withoutKey + 1) % partitions
    return this.#withoutKey
  }

  /** Numbers for so many messages. Returns the first. */
  #take(topic: string, partition: number, count: number): number {
    const sequences = this.#sequences.get(topic) ?? []
    this.#sequences.set(topic, sequences)
    const first = sequences[partition] ?? 0
    sequences[partition] = (first + count) % SEQUENCES
    return first
  }

  async #produce(
    leader: number,
    batches: readonly PartitionBatch[],
    onWritten: OnWritten,
  ): Promise<{ readonly unwritten: readonly PartitionBatch[]; readonly failure: Error | null }> {
    try {
      if (this.#identity === null) throw new WireConnectionError('The producer is not connected')
      const connection = await this.#cluster.leader(leader)
      const request = produceRequest(batches, this.#identity, this.#clock.now().getTime())
      const refusals = refusalsIn(await connection.ask(API.produce, request))
      const unwritten = refusals.length === 0 ? [] : batches.filter((batch) => isAmong(refusals, batch))
      for (const batch of batches) if (!unwritten.includes(batch)) onWritten(batch.messages)
      return { unwritten, failure: this.#refused(refusals) }
    } catch (error) {
      const failure = error instanceof Error ? error : new WireConnectionError(String(error))
      return { unwritten: batches, failure }
    }
  }

  #refused(refusals: readonly Refusal[]): WireError | null {
    if (refusals.length === 0) return null
    this.#cluster.forget()
    const places = refusals.map(({ topic, partition }) => `${topic}/${partition}`)
    return worstOf(refusals.map(({ code }) => new WireError(code, `messages for ${places.join(', ')}`)))
  }
}

function isAmong(refusals: readonly Refusal[], { topic, partition }: PartitionBatch): boolean {
  return refusals.some((refusal) => refusal.topic === topic && refusal.partition === partition)
}
