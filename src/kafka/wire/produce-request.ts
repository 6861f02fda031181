import { ByteReader } from './byte-reader.ts'
import { crc32c } from './crc32c.ts'
import type { EncodedMessage } from './message-encoder.ts'
import { varintSize, writeVarint } from './varint.ts'

/** Messages for one partition. */
export interface PartitionBatch {
  readonly topic: string
  readonly partition: number
  readonly messages: readonly EncodedMessage[]
  /** The number of the first: by it the broker knows what it has already, and what is missing. */
  readonly firstSequence: number
}

/** Who sends. */
export interface ProducerIdentity {
  readonly id: bigint
  readonly epoch: number
}

const ALL_REPLICAS = -1
/** Less than a sender waits: a broker that misses replicas then says so itself, and of which partitions. */
const ANSWER_WITHIN_MS = 20_000
/** No transaction, acks, how long the broker may take, how many topics. */
const HEAD_BYTES = 12
/** The partition, and how many bytes follow. */
const PARTITION_BYTES = 8
/** Everything of a batch before its records. */
const BATCH_BYTES = 61
/** What the length of a batch does not count: the offset and the length itself. */
const UNCOUNTED_BYTES = 12
const CRC_AT = 17
const CHECKED_FROM = 21
const MAGIC = 2

/** The body of a Produce request, version 7. */
export function produceRequest(
  batches: readonly PartitionBatch[],
  producer: ProducerIdentity,
  nowMs: number,
): Buffer {
  const topics = byTopic(batches)
  const bytes = Buffer.allocUnsafe(mostBytes(topics))
  let at = bytes.writeInt16BE(-1, 0)
  at = bytes.writeInt16BE(ALL_REPLICAS, at)
  at = bytes.writeInt32BE(ANSWER_WITHIN_MS, at)
  at = bytes.writeInt32BE(topics.size, at)
  for (const [topic, each] of topics) {
    at = bytes.writeInt16BE(Buffer.byteLength(topic), at)
    at += bytes.write(topic, at)
    at = bytes.writeInt32BE(each.length, at)
    for (const batch of each) at = writePartition(bytes, at, batch, producer, nowMs)
  }
  return bytes.subarray(0, at)
}

/** A partition that was not written, and the code that says why. */
export interface Refusal {
  readonly topic: string
  readonly partition: number
  readonly code: number
}

/** The partitions that were not written. */
export function refusalsIn(response: Buffer): readonly Refusal[] {
  const reader = new ByteReader(response)
  const refusals: Refusal[] = []
  for (let topics = reader.int32(); topics > 0; topics -= 1) {
    const topic = reader.text()
    for (let partitions = reader.int32(); partitions > 0; partitions -= 1) {
      const partition = reader.int32()
      const code = reader.int16()
      if (code !== 0) refusals.push({ topic, partition, code })
      // Its offset, its time, and where the log begins.
      reader.skip(24)
    }
  }
  return refusals
}

function byTopic(batches: readonly PartitionBatch[]): ReadonlyMap<string, readonly PartitionBatch[]> {
  const topics = new Map<string, PartitionBatch[]>()
  for (const batch of batches) {
    const known = topics.get(batch.topic)
    if (known === undefined) topics.set(batch.topic, [batch])
    else known.push(batch)
  }
  return topics
}

function mostBytes(topics: ReadonlyMap<string, readonly PartitionBatch[]>): number {
  let size = HEAD_BYTES
  for (const [topic, batches] of topics) {
    size += Buffer.byteLength(topic) + 6
    for (const { messages } of batches) {
      size += PARTITION_BYTES + BATCH_BYTES
      for (const message of messages) size += message.size + MOST_BEFORE_KEY
    }
  }
  return size
}

function writePartition(
  bytes: Buffer,
  at: number,
  { partition, messages, firstSequence }: PartitionBatch,
  producer: ProducerIdentity,
  nowMs: number,
): number {
  const start = at + PARTITION_BYTES
  let end = start + BATCH_BYTES
  for (const [index, message] of messages.entries()) end = writeRecord(bytes, end, message, index)
  bytes.writeInt32BE(partition, at)
  bytes.writeInt32BE(end - start, at + 4)
  writeBatchHead(
    bytes,
    start,
    { length: end - start, count: messages.length, firstSequence, nowMs },
    producer,
  )
  bytes.writeUInt32BE(crc32c(bytes, start + CHECKED_FROM, end), start + CRC_AT)
  return end
}

function writeBatchHead(
  bytes: Buffer,
  start: number,
  batch: {
    readonly length: number
    readonly count: number
    readonly firstSequence: number
    readonly nowMs: number
  },
  { id, epoch }: ProducerIdentity,
): void {
  let at = bytes.writeBigInt64BE(0n, start)
  at = bytes.writeInt32BE(batch.length - UNCOUNTED_BYTES, at)
  // Which leader it is meant for is not said.
  at = bytes.writeInt32BE(-1, at)
  at = bytes.writeInt8(MAGIC, at)
  // The checksum comes when all else is there. No compression, and the time is the sender's.
  at = bytes.writeInt16BE(0, at + 4)
  at = bytes.writeInt32BE(batch.count - 1, at)
  at = bytes.writeBigInt64BE(BigInt(batch.nowMs), at)
  at = bytes.writeBigInt64BE(BigInt(batch.nowMs), at)
  at = bytes.writeBigInt64BE(id, at)
  at = bytes.writeInt16BE(epoch, at)
  at = bytes.writeInt32BE(batch.firstSequence, at)
  bytes.writeInt32BE(batch.count, at)
}

/** The length, no attributes, the time of the batch, and the place in it. */
const MOST_BEFORE_KEY = 12

function writeRecord(bytes: Buffer, start: number, message: EncodedMessage, index: number): number {
  const { size } = message
  let at = writeVarint(bytes, start, size + 2 + varintSize(index))
  bytes[at] = 0
  bytes[at + 1] = 0
  at = writeVarint(bytes, at + 2, index)
  message.bytes.copy(bytes, at, message.start, message.end)
  return at + size
}
