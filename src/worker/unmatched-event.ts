import type { OutboxEvent } from '../event/event.ts'
import type { UnmatchedEvent } from '../store/subscription-store.ts'

/** As much of an event as is known of one that nobody takes. */
export function unmatchedEvent({ eventId, stream, eventType }: UnmatchedEvent): OutboxEvent {
  return {
    eventId,
    stream,
    type: eventType,
    position: '',
    schemaVersion: 1,
    aggregateType: '',
    aggregateId: '',
    orderingKey: '',
    sequence: null,
    payload: null,
    headers: {},
    occurredAt: new Date(0),
    createdAt: new Date(0),
  }
}
