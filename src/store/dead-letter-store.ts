import type { JsonValue } from '../event/event.ts'

/** One failed attempt in a delivery's history. */
export interface AttemptRecord {
  readonly attempt: number
  readonly at: string
  readonly worker: string
  readonly durationMs: number
  readonly code: string
  readonly message: string
}

/** What is kept of a DEAD delivery for a person to decide on. */
export interface DeadLetter {
  readonly id: string
  readonly subscription: string
  readonly eventId: string
  readonly position: string
  readonly stream: string
  readonly eventType: string
  readonly schemaVersion: number
  readonly aggregateType: string
  readonly aggregateId: string
  readonly orderingKey: string | null
  readonly payload: JsonValue
  readonly headers: Readonly<Record<string, string>>
  readonly occurredAt: Date
  readonly errorCode: string
  readonly errorMessage: string
  readonly attemptHistory: readonly AttemptRecord[]
  /** Attempts made after the first: attempts - 1. */
  readonly retryCount: number
  readonly failedAt: Date
  readonly resolved: boolean
  /** How a person closed it: sent on its way again, or settled by hand. Null while it is open. */
  readonly resolution: 'retry' | 'resolve' | null
  readonly resolvedAt: Date | null
  readonly resolvedBy: string | null
  readonly note: string | null
}

/** Which dead letters to list. Pages by id, newest first. */
export interface DeadLetterQuery {
  readonly subscription?: string
  readonly eventType?: string
  readonly errorCode?: string
  /** True lists resolved ones, false (the default) those that wait for a person, null both. */
  readonly resolved?: boolean | null
  /** Only ids below this one: the last id of the page before. */
  readonly before?: string
  /** @default 50 */
  readonly limit?: number
}

/** 5b SET ASIDE: what a person does with dead letters. Every act is logged with the operator in its transaction. */
export interface DeadLetterStore {
  listDeadLetters(query: DeadLetterQuery): Promise<readonly DeadLetter[]>
  countDeadLetters(query: Omit<DeadLetterQuery, 'before' | 'limit'>): Promise<number>
  findDeadLetter(id: string): Promise<DeadLetter | null>
  /** DEAD -> PENDING, attempts 0, now. The dead letter is resolved; dying again makes a new one. */
  retryDeadLetter(id: string, operator: string, note: string | null): Promise<void>
  /** Leaves the delivery DEAD and lets what waits behind it go on. */
  resolveDeadLetter(id: string, operator: string, note: string | null): Promise<void>
}
