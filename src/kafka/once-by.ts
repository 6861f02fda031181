import { createHash } from 'node:crypto'
import type { OutboxEvent } from '../event/event.ts'

/**
 * The id under which an inbox knows an event by its ordering key and sequence: a UUID (version 8) of their digest, so
 * that one table serves both ways. An event without a sequence is known by its own id.
 */
export function sequenceId({ orderingKey, sequence, eventId }: OutboxEvent): string {
  if (sequence === null) return eventId
  const digest = createHash('sha256').update(`${sequence}:${orderingKey}`).digest()
  digest[6] = ((digest[6] ?? 0) & 0x0f) | 0x80
  digest[8] = ((digest[8] ?? 0) & 0x3f) | 0x80
  const hex = digest.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join(
    '-',
  )
}
