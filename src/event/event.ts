/** Anything JSON can hold. Payloads and headers are stored as this, never as live objects. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined
}

/** Flat, string-valued metadata that travels with an event: tracing, causation and attributes of the domain. */
export type EventHeaders = Readonly<Record<string, string>>

/**
 * One immutable fact as a handler sees it.
 *
 * `eventId` is the identity to de-duplicate by. `position` only orders events of one key: it is a 64-bit number
 * kept as text because a JavaScript number cannot hold it.
 */
export interface OutboxEvent<Type extends string = string, Payload = unknown> {
  readonly eventId: string
  readonly position: string
  readonly stream: string
  readonly type: Type
  readonly schemaVersion: number
  readonly aggregateType: string
  readonly aggregateId: string
  /** What order, sequence and a broker's key follow. The aggregate, unless the publisher chose another key. */
  readonly orderingKey: string
  /** 1, 2, 3 … within the ordering key, or null where the event type keeps no sequence. */
  readonly sequence: number | null
  readonly payload: Payload
  readonly headers: EventHeaders
  readonly occurredAt: Date
  readonly createdAt: Date
}

/** What names an event: enough for every line about it, without its payload. */
export type EventIdentity = Pick<
  OutboxEvent,
  'eventId' | 'stream' | 'type' | 'aggregateType' | 'aggregateId' | 'headers'
>

/** An event on its way into the table: checked, serialised and complete but for what the database assigns. */
export interface NewEvent {
  readonly eventId: string
  readonly stream: string
  readonly type: string
  readonly schemaVersion: number
  readonly aggregateType: string
  readonly aggregateId: string
  /** Null means "the aggregate": the database derives the key from aggregate type and id. */
  readonly orderingKey: string | null
  /** True makes the database lock the ordering key and number the event within it. */
  readonly sequenced: boolean
  /** Serialised JSON text, already proven storable. */
  readonly payloadJson: string
  readonly headers: EventHeaders
  /** Null means "now", by the database's clock. */
  readonly occurredAt: Date | null
}

/** The ordering key of an event that names none: stable, and never equal for two aggregate types. */
export function defaultOrderingKey(aggregateType: string, aggregateId: string): string {
  return `${aggregateType}:${aggregateId}`
}
