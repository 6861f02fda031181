import type { Catalogue, EventName, PayloadInput } from '../event/catalogue.ts'
import type { EventHeaders } from '../event/event.ts'
import type { OnDuplicate } from '../store/publish-store.ts'

/** What is said of an event besides its payload. */
export interface EventDetails {
  /** Which aggregate it happened to. Numbers are stored as text. */
  readonly aggregateId: string | number | bigint
  /**
   * The event's identity, a UUID. Give one of your own where the whole operation may be run again: the second publish
   * is then recognised.
   * @default a new UUID v7
   */
  readonly eventId?: string | undefined
  /**
   * When it happened.
   * @default the time of the transaction, by the database's clock
   */
  readonly occurredAt?: Date | undefined
  /**
   * What order, sequence and a broker's key follow.
   * @default what the definition says, else the aggregate
   */
  readonly orderingKey?: string | number | bigint | undefined
  /** Attributes of the domain (ownerId, market …). Texts; each also becomes a field of the envelope. */
  readonly headers?: EventHeaders | undefined
  /** The W3C trace this belongs to. A malformed text is left out: a broken header must not break a business transaction. */
  readonly traceparent?: string | undefined
  readonly tracestate?: string | undefined
  /** What ties together all events of one business operation. */
  readonly correlationId?: string | undefined
  /** The id of the event or command that caused this one. */
  readonly causationId?: string | undefined
}

/** One event to publish. */
export interface PublishInput<Payload = unknown> extends EventDetails, PublishOptions {
  readonly payload: Payload
}

/** One event of a batch, with its name. */
export type BatchInput<C extends Catalogue> = {
  readonly [Name in EventName<C>]: EventDetails & {
    readonly type: Name
    readonly payload: PayloadInput<C, Name>
  }
}[EventName<C>]

/** How a publish goes about ids it has seen. */
export interface PublishOptions {
  /**
   * `error` refuses an event whose id is in the outbox; `ignore` takes it for a repetition and writes nothing.
   * @default 'error'
   */
  readonly onDuplicate?: OnDuplicate | undefined
}

/**
 * The only thing a domain depends on: it says that something happened, inside the transaction that makes it so. The
 * outbox implements it by an INSERT; another bus (Kafka, a test's list) can take its place without the domain noticing.
 *
 * `Tx` is the transaction handle of the bus: for an outbox the client on which BEGIN was run, never a pool.
 */
export interface EventBus<C extends Catalogue, Tx> {
  /**
   * Publishes one event and returns its id. Nobody sees the event before the transaction commits, and never if it
   * does not. In `outbox.inTransaction` it may be written as late as with the next statement, or with COMMIT.
   * @throws InvalidEventError when the event cannot be published as given; nothing was written.
   */
  publish<Name extends EventName<C>>(
    tx: Tx,
    name: Name,
    input: PublishInput<PayloadInput<C, Name>>,
  ): Promise<string>
  /**
   * Publishes several events, in this order, in one statement (of very large ones, several): all or none. Returns their ids in the same order.
   * @throws InvalidEventError listing the problems of all events; nothing was written.
   */
  publishAll(tx: Tx, inputs: readonly BatchInput<C>[], options?: PublishOptions): Promise<readonly string[]>
}
