import type { EventHeaders } from '../event/event.ts'

/** Headers by which a consumer knows the event again, whatever the value is. */
const EVENT_HEADERS = [
  'eventId',
  'eventType',
  'schemaVersion',
  'sequence',
  'stream',
  'aggregateType',
  'aggregateId',
  'orderingKey',
  'occurredAt',
] as const

/** Those that say something of the message itself: `id` is the event's in what Debezium's outbox router writes. */
export const MESSAGE_HEADERS: ReadonlySet<string> = new Set<string>([...EVENT_HEADERS, 'id', 'content-type'])

const CLOUD_EVENT = 'ce_'
const SET_ASIDE = 'attribute.'

/**
 * The headers of an event as a message has them. An attribute of the domain must not pass for the message's own: one that
 * has such a name gets another on its way, and its own back where it is read.
 */
export function onTheWire(headers: EventHeaders): Record<string, string> {
  const sent: Record<string, string> = { ...headers }
  const taken = Object.keys(headers).filter(isTaken)
  // All of them go before any comes back: the new name of one may be the old one of another.
  for (const name of taken) delete sent[name]
  for (const name of taken) sent[`${SET_ASIDE}${name}`] = headers[name] as string
  return sent
}

/** The name that an attribute of the domain was given, by that of its header in a message. */
export function attributeName(sent: string): string {
  const name = sent.startsWith(SET_ASIDE) ? sent.slice(SET_ASIDE.length) : sent
  return isTaken(name) ? name : sent
}

/** A name that was set aside stands for another as well: it is set aside once more. */
function isTaken(name: string): boolean {
  if (MESSAGE_HEADERS.has(name) || name.startsWith(CLOUD_EVENT)) return true
  return name.startsWith(SET_ASIDE) && isTaken(name.slice(SET_ASIDE.length))
}
