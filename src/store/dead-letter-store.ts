import type { JsonObject, JsonValue } from '../event/event.ts'

/** The name under which dead letters of events stand that no subscription took. No subscription can have it. */
export const NO_SUBSCRIPTION = '(none)'

/** One failed attempt in a delivery's history. */
export interface AttemptRecord {
  /** 1 for the first; a retry by a person begins at 1 again. */
  readonly attempt: number
  /** When it was claimed, as an ISO time. */
  readonly at: string
  readonly worker: string
  readonly durationMs: number
  readonly code: string
  readonly message: string
}

/** Why a delivery is dead. A closed list, where `errorCode` may be anything that a handler threw. */
export type DeadLetterReason =
  | 'NO_HANDLER'
  | 'UNKNOWN_EVENT_TYPE'
  | 'PAYLOAD_INVALID'
  | 'UPCAST_FAILED'
  | 'NON_RETRYABLE'
  | 'RETRIES_EXHAUSTED'
  | 'CRASHED'
  | 'SUBSCRIPTION_RETIRED'
  | 'MOVED_ASIDE'
  | 'NO_SUBSCRIPTION'

/** The reasons why a delivery is dead, and what each tells the person on call. */
export const DEAD_LETTER_REASONS: Readonly<Record<DeadLetterReason, string>> = {
  NO_HANDLER: 'The subscription takes this event but has no handler for its type.',
  UNKNOWN_EVENT_TYPE: 'The catalogue of the running code does not know this event type.',
  PAYLOAD_INVALID: 'The payload does not fit the schema of the running code.',
  UPCAST_FAILED: 'The stored payload could not be brought up to the version of the running code.',
  NON_RETRYABLE: 'The failure was one that trying again does not heal, so it was not tried again.',
  RETRIES_EXHAUSTED: 'Every attempt failed, and there were no more.',
  CRASHED: 'The worker vanished each time it ran this delivery, also when it ran alone.',
  SUBSCRIPTION_RETIRED: 'The subscription was retired while this delivery was still open.',
  MOVED_ASIDE: 'An operator moved its blocked ordering key aside before this delivery had its turn.',
  NO_SUBSCRIPTION: 'No subscription takes this event; it was set aside because the worker was told to.',
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
  readonly reason: DeadLetterReason
  readonly errorCode: string
  readonly errorMessage: string
  /** What errors that differ only in numbers, ids and quoted values have in common: see `group`. */
  readonly fingerprint: string
  /** Every failed attempt, oldest first; of more than 50 the newest. */
  readonly attemptHistory: readonly AttemptRecord[]
  /** Attempts made after the first: attempts - 1, and 0 where there was none. */
  readonly retryCount: number
  readonly failedAt: Date
  readonly resolved: boolean
  /** How a person closed it: sent on its way again, as it was or amended, or settled by hand. Null while it is open. */
  readonly resolution: 'retry' | 'resolve' | 'amend' | null
  readonly resolvedAt: Date | null
  readonly resolvedBy: string | null
  readonly note: string | null
  /**
   * When the re-drive policy of its subscription delivers it again by itself, as long as the code has that policy. `never`:
   * it has been tried as often as the policy may, and waits for a person. Null: no policy has looked at it, or it is resolved.
   */
  readonly redriveAt: Date | 'never' | null
}

/** Which dead letters are meant. What is left out does not narrow it. */
export interface DeadLetterFilter {
  readonly subscription?: string
  readonly stream?: string
  readonly eventType?: string
  readonly reason?: DeadLetterReason
  readonly errorCode?: string
  /** Text in the error message, as it is and not as a pattern; upper and lower case are the same. */
  readonly text?: string
  /** All errors of one group: see `group`. */
  readonly fingerprint?: string
  readonly aggregateType?: string
  readonly aggregateId?: string
  /** Failed at this time or later. */
  readonly failedFrom?: Date
  /** Failed before this time. */
  readonly failedTo?: Date
  /** True means resolved ones, false (the default) those that wait for a person, null both. */
  readonly resolved?: boolean | null
}

/** Which dead letters to list. Pages by id, newest first. */
export interface DeadLetterQuery extends DeadLetterFilter {
  /** Only ids below this one: the last id of the page before. */
  readonly before?: string
  /** @default 50 */
  readonly limit?: number
}

/** Which groups of dead letters to list. */
export interface DeadLetterGroupQuery extends DeadLetterFilter {
  /**
   * At most so many groups, the largest first.
   * @default 50
   */
  readonly limit?: number
}

/** Dead letters whose errors differ only in numbers, ids and quoted values. */
export interface DeadLetterGroup {
  readonly fingerprint: string
  readonly errorCode: string
  /** The message with `<n>`, `<uuid>`, `<hex>` and `<value>` where they differ. */
  readonly pattern: string
  readonly count: number
  readonly firstFailedAt: Date
  readonly lastFailedAt: Date
  /** By name; at most 20. */
  readonly subscriptions: readonly string[]
  /** By name; at most 20. */
  readonly eventTypes: readonly string[]
  /** The id of the newest of them. */
  readonly sampleId: string
}

/** Which resolved dead letters go, in whose name. */
export interface PurgeRequest {
  /** Those that were resolved longer ago than this. */
  readonly olderThanMs: number
  /** Null means of every subscription. */
  readonly subscription: string | null
  readonly operator: string
  readonly note: string | null
}

/** Who was shown what is hidden by default, and how much of it. */
export interface RevealRecord {
  readonly operator: string
  readonly note: string | null
  /** What was shown: a dead letter, or a filter. */
  readonly target: JsonObject
  readonly affected: number
}

/** An event that takes the place of one that is dead. */
export interface AmendRequest {
  readonly eventId: string
  /** Serialised JSON text, already proven storable. */
  readonly payloadJson: string
  /** The version of the payload; null means that of the original. */
  readonly schemaVersion: number | null
  readonly operator: string
  readonly note: string | null
}

/** Which blocked keys to list: those that have waited longest first. */
export interface BlockedKeyQuery {
  readonly subscription?: string
  /** Only those whose dead letter has an id above this one: the last of the page before. */
  readonly after?: string
  /** @default 50 */
  readonly limit?: number
}

/** A key of an ordered subscription whose events wait for a decision on a dead one. */
export interface BlockedKey {
  readonly subscription: string
  readonly orderingKey: string
  /** The dead letter to decide on. */
  readonly deadLetterId: string
  readonly eventId: string
  readonly eventType: string
  readonly errorCode: string
  readonly errorMessage: string
  readonly failedAt: Date
  /** Since the event died, by the database's clock. */
  readonly blockedSeconds: number
  /** Events of the key that wait behind it. */
  readonly waiting: number
  /** False where counting was broken off: there may be more. */
  readonly waitingIsExact: boolean
}

/** 5b SET ASIDE: what a person does with dead letters. Every act is logged with the operator in its transaction. */
export interface DeadLetterStore {
  listDeadLetters(query: DeadLetterQuery): Promise<readonly DeadLetter[]>
  countDeadLetters(filter: DeadLetterFilter): Promise<number>
  groupDeadLetters(query: DeadLetterGroupQuery): Promise<readonly DeadLetterGroup[]>
  findDeadLetter(id: string): Promise<DeadLetter | null>
  blockedKeys(query: BlockedKeyQuery): Promise<readonly BlockedKey[]>
  /** DEAD -> PENDING, attempts 0, now. The dead letter is resolved; dying again makes a new one. */
  retryDeadLetter(id: string, operator: string, note: string | null): Promise<void>
  /** Leaves the delivery DEAD and lets what waits behind it go on. */
  resolveDeadLetter(id: string, operator: string, note: string | null): Promise<void>
  /** DEAD -> PENDING with another event in its place, for this subscription only. */
  amendDeadLetter(id: string, request: AmendRequest): Promise<void>
  /** Removes resolved ones, in batches of which each is a transaction with its record. Returns how many. */
  purgeDeadLetters(request: PurgeRequest): Promise<number>
  /** Writes down that somebody is shown what is hidden by default. */
  recordReveal(record: RevealRecord): Promise<void>
}
