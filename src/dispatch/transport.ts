import type { DeliveryOutcome } from '../delivery/delivery.ts'
import type { OutboxEvent } from '../event/event.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Random } from '../runtime/random.ts'

/** What a transport gets from the worker that uses it. */
export interface TransportParts {
  readonly subscription: string
  readonly clock: Clock
  readonly random: Random
  /** To be told once per outage of the destination, while the tries go on. */
  onOutage(error: unknown): void
}

/**
 * Hands events to another system, many at a time: a subscription uses one in place of handlers (`via`). Each
 * subscription at work opens a session of its own.
 */
export interface Transport {
  /** Makes a session. It connects when it first sends. @throws InvalidOptionsError where it could never work. */
  open(parts: TransportParts): TransportSession
}

/** A subscription's own connection to the destination. */
export interface TransportSession {
  /**
   * Sends the events and resolves with how each ended, in the same order. Never rejects.
   *
   * Of one ordering key nothing may be sent behind an event that was not: what stands behind it is `interrupted`. While
   * the destination is down the session waits and tries again, which is nobody's attempt; when the signal aborts it
   * reports what it has not sent as `interrupted`.
   */
  send(events: readonly OutboxEvent[], signal: AbortSignal): Promise<readonly DeliveryOutcome[]>
  /**
   * Does what can be done for an event before it is sent, while others are under way: a hint. It may be sent later, with
   * others, or never.
   */
  prepare?(event: OutboxEvent): void
  /** Lets the connections go. */
  close(): Promise<void>
}
