import type { KafkaTopicMessages, PreparedMessage } from './client.ts'
import type { KafkaRecord } from './record.ts'

/** A record, and what must keep its order. */
export interface Outgoing {
  readonly record: KafkaRecord
  /** Once one of a key is not sent, nothing later of it is. */
  readonly orderingKey: string
  /** The record as the producer sends it, where it can be prepared and was. */
  prepared?: PreparedMessage
}

/** One record on its way, and its place in the answer. */
export interface Item {
  readonly outgoing: Outgoing
  readonly index: number
}

/** What a record has beside its texts, roughly. */
const RECORD_OVERHEAD = 64

/** What must keep its order. */
export function keyOf({ outgoing }: Item): string {
  return outgoing.orderingKey
}

/** Where it goes. */
export function topicOf({ outgoing }: Item): string {
  return outgoing.record.topic
}

/** One request after the other, of so many bytes at most, unless one record alone is larger. */
export function* requestsOf(items: readonly Item[], maxBytes: number): Generator<readonly Item[]> {
  let request: Item[] = []
  let bytes = 0
  for (const item of items) {
    const size = sizeOf(item.outgoing)
    if (request.length > 0 && bytes + size > maxBytes) {
      yield request
      request = []
      bytes = 0
    }
    request.push(item)
    bytes += size
  }
  if (request.length > 0) yield request
}

/** As clients take it. Made anew for every try: they change what they are given. */
export function batchOf(items: readonly Item[]): { topicMessages: KafkaTopicMessages[] } {
  const topicMessages = [...byTopic(items)].map(([topic, each]) => ({
    topic,
    messages: each.map(({ outgoing: { record } }) => {
      const { key, value, headers } = record
      return { key, value, headers: { ...headers } }
    }),
  }))
  return { topicMessages }
}

/** What was not written. A key stays whole: what is behind one of it that was not written is sent again with it. */
export function unwrittenOf(
  items: readonly Item[],
  written: readonly (readonly PreparedMessage[])[],
): readonly Item[] {
  if (written.length === 0) return items
  const known = new Set(written.flat())
  const open = new Set<string>()
  return items.filter((item) => {
    const { prepared } = item.outgoing
    const isWritten = prepared !== undefined && known.has(prepared) && !open.has(keyOf(item))
    if (!isWritten) open.add(keyOf(item))
    return !isWritten
  })
}

function byTopic(items: readonly Item[]): ReadonlyMap<string, readonly Item[]> {
  const topics = new Map<string, Item[]>()
  for (const item of items) {
    const known = topics.get(topicOf(item))
    if (known === undefined) topics.set(topicOf(item), [item])
    else known.push(item)
  }
  return topics
}

/** By topic first, which is what most refusals are about, unless that changed the order of a key; then in halves. */
export function parted(items: readonly Item[]): readonly (readonly Item[])[] {
  const topics = [...byTopic(items).values()]
  const keys = topics.map((each) => new Set(each.map(keyOf)))
  const areApart =
    keys.reduce((sum, { size }) => sum + size, 0) === new Set(keys.flatMap((each) => [...each])).size
  if (topics.length > 1 && areApart) return topics
  const middle = items.length >> 1
  return [items.slice(0, middle), items.slice(middle)]
}

function sizeOf({ record, prepared }: Outgoing): number {
  if (prepared !== undefined) return prepared.size + RECORD_OVERHEAD
  const { key, value, headers } = record
  let ofHeaders = 0
  for (const name of Object.keys(headers)) ofHeaders += name.length + (headers[name]?.length ?? 0)
  return Buffer.byteLength(value) + Buffer.byteLength(key ?? '') + ofHeaders + RECORD_OVERHEAD
}
