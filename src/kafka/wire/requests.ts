import { ByteReader } from './byte-reader.ts'
import type { ProducerIdentity } from './produce-request.ts'
import { WireError } from './wire-error.ts'

/**
 * What is asked of a broker. These versions are those of Kafka 2.1, the oldest that Kafka 4 still speaks; none of them
 * needs to be negotiated.
 */
export const API = {
  produce: { key: 0, version: 7 },
  metadata: { key: 3, version: 7 },
  saslHandshake: { key: 17, version: 1 },
  initProducerId: { key: 22, version: 1 },
  saslAuthenticate: { key: 36, version: 0 },
} as const

/** One of them. */
export type Api = (typeof API)[keyof typeof API]

/** Where a broker is. */
export interface BrokerAddress {
  readonly host: string
  readonly port: number
}

/** What the brokers tell of a topic. */
export interface TopicMetadata {
  readonly brokers: ReadonlyMap<number, BrokerAddress>
  /** By the number of the partition: which broker leads it; -1 where none does. */
  readonly leaders: readonly number[]
}

/** Asks for one topic, which does not come into being by that. */
export function metadataRequest(topic: string): Buffer {
  return Buffer.concat([int32(1), text(topic), Buffer.from([0])])
}

/** @throws WireError with the broker's code where it does not have the topic. */
export function readMetadata(response: Buffer, topic: string): TopicMetadata {
  const reader = new ByteReader(response)
  reader.int32()
  const brokers = reader.list(() => {
    const id = reader.int32()
    const address = { host: reader.text(), port: reader.int32() }
    reader.text()
    return [id, address] as const
  })
  reader.text()
  reader.int32()
  const [only] = reader.list(() => readTopic(reader))
  if (only === undefined || only.code !== 0) throw new WireError(only?.code ?? 3, `topic "${topic}"`)
  const leaders: number[] = []
  for (const { partition, leader } of only.partitions) leaders[partition] = leader
  return { brokers: new Map(brokers), leaders }
}

function readTopic(reader: ByteReader): {
  readonly code: number
  readonly partitions: readonly { readonly partition: number; readonly leader: number }[]
} {
  const code = reader.int16()
  reader.text()
  reader.skip(1)
  const partitions = reader.list(() => {
    reader.int16()
    const partition = reader.int32()
    const leader = reader.int32()
    reader.int32()
    for (let list = 0; list < 3; list += 1) reader.list(() => reader.int32())
    return { partition, leader }
  })
  return { code, partitions }
}

/** For no transaction: the time that one may take does not matter. */
export function initProducerIdRequest(): Buffer {
  return Buffer.concat([int16(-1), int32(60_000)])
}

/** @throws WireError with the broker's code. */
export function readProducerIdentity(response: Buffer): ProducerIdentity {
  const reader = new ByteReader(response)
  reader.int32()
  const code = reader.int16()
  if (code !== 0) throw new WireError(code, 'a producer id')
  return { id: reader.int64(), epoch: reader.int16() }
}

/** Names how this client proves who it is. */
export function saslHandshakeRequest(mechanism: string): Buffer {
  return text(mechanism)
}

/** @throws WireError where the broker does not know the way. */
export function readSaslHandshake(response: Buffer): void {
  const reader = new ByteReader(response)
  const code = reader.int16()
  if (code === 0) return
  throw new WireError(
    code,
    `the SASL mechanism; the broker has ${reader.list(() => reader.text()).join(', ')}`,
  )
}

/** One step of the proof. */
export function saslAuthenticateRequest(bytes: Buffer): Buffer {
  return Buffer.concat([int32(bytes.length), bytes])
}

/** What the broker says to it. @throws WireError where it does not believe. */
export function readSaslAuthenticate(response: Buffer): Buffer {
  const reader = new ByteReader(response)
  const code = reader.int16()
  const why = reader.text()
  if (code !== 0) throw new WireError(code, `who this client is: ${why}`)
  return reader.bytes()
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeInt16BE(value)
  return bytes
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([int16(bytes.length), bytes])
}
