import { isIPv6 } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { type Clock, systemClock } from '../../runtime/clock.ts'
import {
  isRecord,
  oneOfProblem,
  recordProblem,
  refuseProblems,
  shown,
  textProblem,
  unknownOptionProblems,
  wholeNumberProblem,
} from '../../runtime/option-checks.ts'
import type { KafkaMessage, KafkaProducer, KafkaTopicMessages } from '../client.ts'
import { Cluster } from './cluster.ts'
import { type EncodedMessage, MessageEncoder } from './message-encoder.ts'
import { untilReady } from './not-yet.ts'
import {
  firstRefusal,
  type PartitionBatch,
  type ProducerIdentity,
  produceRequest,
} from './produce-request.ts'
import { API, type BrokerAddress, initProducerIdRequest, readProducerIdentity } from './requests.ts'
import type { SaslCredentials } from './sasl.ts'
import { WireConnectionError, WireError } from './wire-error.ts'

/** How a relay's own producer reaches the brokers. The names are those of kafkajs. */
export interface RelayProducerOptions {
  /** Where to begin: `['kafka-1:9092', 'kafka-2:9092']`. */
  readonly brokers: readonly string[]
  /** @default 'commitpost' */
  readonly clientId?: string
  /**
   * TLS: true, or what `tls.connect` takes (`ca`, `cert`, `key` …).
   * @default false
   */
  readonly ssl?: boolean | ConnectionOptions
  /** Who this client is, where brokers ask. */
  readonly sasl?: SaslCredentials
  /**
   * How long a broker may take to answer a new connection, in milliseconds.
   * @default 5_000
   */
  readonly connectionTimeout?: number
}

const OPTION_NAMES: readonly (keyof RelayProducerOptions)[] = [
  'brokers',
  'clientId',
  'ssl',
  'sasl',
  'connectionTimeout',
]
const LONGEST_CONNECT_MS = 600_000
const ADDRESS = /^(.+):(\d{1,5})$/
const SEQUENCES = 2 ** 31

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
    isRecord(options) ? optionProblems(options) : [recordProblem('the options', options)],
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
    const connection = await this.#cluster.any()
    this.#identity = await untilReady(this.#clock, async () =>
      readProducerIdentity(await connection.ask(API.initProducerId, initProducerIdRequest())),
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
  sendPrepared(topics: ReadonlyMap<string, readonly EncodedMessage[]>): Promise<void> {
    const sent = this.#last.then(() => this.#send(topics))
    this.#last = sent.catch(() => {
      throw new WireConnectionError('An earlier request of this producer failed')
    })
    this.#last.catch(() => undefined)
    return sent
  }

  async disconnect(): Promise<void> {
    this.#cluster.close()
  }

  /** A leader may have moved: what went to the old one is sent again under the same numbers, and is written once. */
  async #send(topics: ReadonlyMap<string, readonly EncodedMessage[]>): Promise<void> {
    const batches: PartitionBatch[] = []
    for (const [topic, messages] of topics) {
      const leaders = await this.#cluster.leaders(topic)
      batches.push(...this.#batchesOf(topic, messages, leaders.length))
    }
    await untilReady(this.#clock, async () => {
      const requests = await this.#byLeader(batches)
      await Promise.all([...requests].map(([leader, each]) => this.#produce(leader, each)))
    })
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
    return partitions.flatMap((chosen, partition) =>
      chosen.length === 0
        ? []
        : [
            {
              topic,
              partition,
              messages: chosen,
              firstSequence: this.#take(topic, partition, chosen.length),
            },
          ],
    )
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

  async #produce(leader: number, batches: readonly PartitionBatch[]): Promise<void> {
    if (this.#identity === null) throw new WireConnectionError('The producer is not connected')
    const connection = await this.#cluster.leader(leader)
    const request = produceRequest(batches, this.#identity, this.#clock.now().getTime())
    const code = firstRefusal(await connection.ask(API.produce, request))
    if (code === 0) return
    this.#cluster.forget()
    const places = batches.map(({ topic, partition }) => `${topic}/${partition}`)
    throw new WireError(code, `messages for ${places.join(', ')}`)
  }
}

function addressOf(broker: string): BrokerAddress | null {
  const [, name = '', port = ''] = ADDRESS.exec(broker) ?? []
  const host = name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name
  const isHost = host !== '' && (!host.includes(':') || isIPv6(host))
  return isHost && Number(port) > 0 && Number(port) < 65_536 ? { host, port: Number(port) } : null
}

function optionProblems(options: Readonly<Record<string, unknown>>): readonly (string | null)[] {
  const { ssl, sasl } = options
  const isSsl = ssl === undefined || typeof ssl === 'boolean' || isRecord(ssl)
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    brokersProblem(options['brokers']),
    textProblem('clientId', options['clientId']),
    isSsl ? null : `ssl must be true, false or an object, but is ${shown(ssl)}`,
    ...(sasl === undefined ? [] : saslProblems(sasl)),
    wholeNumberProblem('connectionTimeout', options['connectionTimeout'], 1, LONGEST_CONNECT_MS),
  ]
}

function brokersProblem(brokers: unknown): string | null {
  const wanted = "brokers must be a list of at least one 'host:port'"
  if (!Array.isArray(brokers) || brokers.length === 0) return `${wanted}, but is ${shown(brokers)}`
  const wrong: unknown = brokers.find((broker) => typeof broker !== 'string' || addressOf(broker) === null)
  return wrong === undefined ? null : `${wanted}, but has ${shown(wrong)}`
}

function saslProblems(sasl: unknown): readonly (string | null)[] {
  if (!isRecord(sasl)) return [recordProblem('sasl', sasl)]
  return [
    ...unknownOptionProblems(sasl, ['mechanism', 'username', 'password']),
    oneOfProblem('mechanism of sasl', sasl['mechanism'] ?? null, ['plain', 'scram-sha-256', 'scram-sha-512']),
    textProblem('username of sasl', sasl['username'] ?? null),
    // A password must not be shown, so it is not.
    typeof sasl['password'] === 'string' && sasl['password'] !== ''
      ? null
      : 'password of sasl must be text that is not empty',
  ]
}
