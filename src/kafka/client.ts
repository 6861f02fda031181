/** A header as KafkaJS takes it: text, bytes, or several of one name. */
export type SentHeader = string | Buffer | (string | Buffer)[]

/** A message as KafkaJS takes it. */
export interface KafkaMessage {
  readonly key: string | Buffer | null
  readonly value: string | Buffer
  readonly headers: Readonly<Record<string, SentHeader>>
}

/** Messages of one topic. */
export interface KafkaTopicMessages {
  readonly topic: string
  readonly messages: KafkaMessage[]
}

/**
 * A producer as KafkaJS has it. `kafkajs` and the KafkaJS interface of `@confluentinc/kafka-javascript` both fit. It has
 * to be idempotent and to wait for all replicas (acks -1). Confluent's says neither: it is believed to be both.
 */
export interface KafkaProducer {
  connect(): Promise<unknown>
  sendBatch(batch: { topicMessages: KafkaTopicMessages[] }): Promise<unknown>
  disconnect(): Promise<unknown>
  /** Known to kafkajs alone: where it says false, the producer is refused. */
  isIdempotent?(): boolean
  /** Does what can be done without the brokers, while they are busy with others. Known to `relayProducer`. */
  prepare?(message: KafkaMessage): PreparedMessage
  /**
   * Sends what a producer of the same make has prepared. There where `prepare` is. Tells `onWritten` which messages are
   * written as soon as it is known: if it fails, only the others are sent again.
   */
  sendPrepared?(
    topics: ReadonlyMap<string, readonly PreparedMessage[]>,
    onWritten: (messages: readonly PreparedMessage[]) => void,
  ): Promise<unknown>
  /** kafkajs tells by it which requests were answered: what it has sent again by itself is not trusted. */
  on?(event: 'producer.network.request', listener: (request: AnsweredRequest) => void): unknown
}

/** What kafkajs tells of a request that was answered. */
export interface AnsweredRequest {
  readonly payload: { readonly apiName: string }
}

/** A message as a producer has prepared it, which alone knows what else is in it. */
export interface PreparedMessage {
  /** How many bytes it takes. */
  readonly size: number
}

/** A header as it arrives: bytes, text, or several of one name. */
export type ReceivedHeader = Uint8Array | string | readonly (Uint8Array | string)[] | null | undefined

/** A message as KafkaJS hands it to a consumer. */
export interface ReceivedMessage {
  readonly key?: Uint8Array | string | null
  readonly value: Uint8Array | string | null
  readonly headers?: Readonly<Record<string, ReceivedHeader>> | undefined
  readonly offset: string
  /** Milliseconds since 1970, as text. */
  readonly timestamp?: string
}

/** A batch of one partition as KafkaJS hands it to a consumer. */
export interface ReceivedBatch {
  readonly batch: {
    readonly topic: string
    readonly partition: number
    readonly messages: readonly ReceivedMessage[]
  }
  /** Everything up to this offset may be committed. */
  readonly resolveOffset: (offset: string) => void
  /** Tells the group that this consumer is alive. Rejects when the partition is to be given up. */
  readonly heartbeat: () => Promise<void>
  /** Commits what was resolved, if that was not done for a while. */
  readonly commitOffsetsIfNecessary?: () => Promise<void>
  readonly isRunning: () => boolean
  readonly isStale: () => boolean
}

/** What kafkajs tells of a consumer that broke. */
export interface ConsumerCrash {
  readonly payload: {
    readonly error: unknown
    /** Whether it starts again by itself. */
    readonly restart: boolean
  }
}

/** A consumer as KafkaJS has it. `kafkajs` and the KafkaJS interface of `@confluentinc/kafka-javascript` both fit. */
export interface KafkaConsumerClient {
  connect(): Promise<unknown>
  subscribe(subscription: { topics: (string | RegExp)[]; fromBeginning?: boolean }): Promise<unknown>
  run(options: {
    eachBatchAutoResolve: boolean
    partitionsConsumedConcurrently: number
    /** Only kafkajs is told so: Confluent's client commits by itself, and refuses the word. */
    autoCommitInterval?: number
    eachBatch(received: ReceivedBatch): Promise<void>
  }): Promise<unknown>
  disconnect(): Promise<unknown>
  /** Only Confluent's client has it, and is known by it: it is told in its own configuration where to begin. */
  assignment?(): unknown
  /** kafkajs tells by it that it has given up: it is started anew then. Confluent's goes on by itself, and throws. */
  on?(event: 'consumer.crash', listener: (crash: ConsumerCrash) => void): unknown
}
