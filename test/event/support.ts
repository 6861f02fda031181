import type { OutboxEvent } from '../../src/event/event.ts'

/** A stored event, complete but for what the test says of it. */
export function storedEvent(details: Partial<OutboxEvent> = {}): OutboxEvent {
  return {
    eventId: '0198c0de-0000-7000-8000-000000000001',
    position: '9007199254740993',
    stream: 'shop.order.event',
    type: 'OrderPlaced',
    schemaVersion: 1,
    aggregateType: 'order',
    aggregateId: '42',
    orderingKey: 'order:42',
    sequence: null,
    payload: {},
    headers: {},
    occurredAt: new Date('2026-02-17T00:00:00.000Z'),
    createdAt: new Date('2026-02-17T00:00:01.000Z'),
    ...details,
  }
}
