import type { CommitpostErrorCode } from './error-codes.ts'
import { CommitpostError } from './errors.ts'

/** Why something is refused. Stable: programs may switch on it, messages are for people. */
export type RefusalReason =
  | 'letter-retried'
  | 'letter-resolved'
  | 'letter-amended'
  | 'letter-of-retired'
  | 'letter-without-delivery'
  | 'letter-without-event'
  | 'letters-decided'
  | 'key-not-blocked'
  | 'plan-cancelled'
  | 'plan-expired'
  | 'plan-stopped'
  | 'plan-done'
  | 'subscription-served'
  | 'subscription-unfinished'
  | 'subscription-locked'
  | 'monitor-busy'
  | 'no-retention-policy'
  | 'exported-meanwhile'
  | 'removed-meanwhile'
  | 'transaction-open'
  | 'partition-hindered'
  | 'partition-ids'
  | 'partition-positions'
  | 'partition-unprepared'
  | 'partition-locked'
  | 'migration-changed'
  | 'type-not-in-catalogue'
  | 'export-unrecorded'
  | 'export-unreadable'
  | 'export-missing'
  | 'not-an-export'
  | 'directory-unusable'
  | 'directory-is-file'
  | 'directory-not-made'
  | 'export-not-written'
  | 'stream-of-store'
  | 'stream-without-pool'
  | 'stream-unpublished'
  | 'stream-publication-lost'
  | 'stream-of-standby'
  | 'stream-wal-level'
  | 'stream-without-connection'
  | 'stream-not-allowed'
  | 'stream-without-slot'
  | 'stream-slot-in-use'
  | 'stream-columns-missing'
  | 'stream-log-too-long'

/** All reasons, each with the code of the error that says so. Functions of the database name these too. */
export const REFUSAL_REASONS: Readonly<Record<RefusalReason, CommitpostErrorCode>> = {
  'letter-retried': 'INVALID_STATE',
  'letter-resolved': 'INVALID_STATE',
  'letter-amended': 'INVALID_STATE',
  'letter-of-retired': 'INVALID_STATE',
  'letter-without-delivery': 'INVALID_STATE',
  'letter-without-event': 'INVALID_STATE',
  'letters-decided': 'INVALID_STATE',
  'key-not-blocked': 'INVALID_STATE',
  'plan-cancelled': 'INVALID_STATE',
  'plan-expired': 'INVALID_STATE',
  'plan-stopped': 'INVALID_STATE',
  'plan-done': 'INVALID_STATE',
  'subscription-served': 'INVALID_STATE',
  'subscription-unfinished': 'INVALID_STATE',
  'subscription-locked': 'INVALID_STATE',
  'monitor-busy': 'INVALID_STATE',
  'no-retention-policy': 'INVALID_STATE',
  'exported-meanwhile': 'INVALID_STATE',
  'removed-meanwhile': 'INVALID_STATE',
  'transaction-open': 'INVALID_STATE',
  'partition-hindered': 'INVALID_STATE',
  'partition-ids': 'INVALID_STATE',
  'partition-positions': 'INVALID_STATE',
  'partition-unprepared': 'INVALID_STATE',
  'partition-locked': 'INVALID_STATE',
  'migration-changed': 'SCHEMA_VERSION',
  'type-not-in-catalogue': 'UNKNOWN_EVENT_TYPE',
  'export-unrecorded': 'UNKNOWN_OUTCOME',
  'export-unreadable': 'FILE_ERROR',
  'export-missing': 'FILE_ERROR',
  'not-an-export': 'FILE_ERROR',
  'directory-unusable': 'FILE_ERROR',
  'directory-is-file': 'FILE_ERROR',
  'directory-not-made': 'FILE_ERROR',
  'export-not-written': 'FILE_ERROR',
  'stream-of-store': 'STREAM_UNAVAILABLE',
  'stream-without-pool': 'STREAM_UNAVAILABLE',
  'stream-unpublished': 'STREAM_UNAVAILABLE',
  'stream-publication-lost': 'STREAM_UNAVAILABLE',
  'stream-of-standby': 'STREAM_UNAVAILABLE',
  'stream-wal-level': 'STREAM_UNAVAILABLE',
  'stream-without-connection': 'STREAM_UNAVAILABLE',
  'stream-not-allowed': 'STREAM_UNAVAILABLE',
  'stream-without-slot': 'STREAM_UNAVAILABLE',
  'stream-slot-in-use': 'STREAM_UNAVAILABLE',
  'stream-columns-missing': 'STREAM_UNAVAILABLE',
  'stream-log-too-long': 'STREAM_UNAVAILABLE',
}

/** What a refusal is about, by name: the number of a dead letter, the path of a file. */
export type RefusalData = Readonly<Record<string, string>>

/** What more is known of a refusal. */
export interface RefusalOptions extends ErrorOptions {
  readonly data?: RefusalData
}

/** Something that cannot be done as things stand, or not with this file. `reason` and `data` say it without words. */
export class RefusedError extends CommitpostError {
  readonly reason: RefusalReason
  readonly data: RefusalData

  constructor(reason: RefusalReason, message: string, { data = {}, ...options }: RefusalOptions = {}) {
    super(REFUSAL_REASONS[reason], message, options)
    this.reason = reason
    this.data = data
  }
}

/** True for a text that is one of `REFUSAL_REASONS`. */
export function isRefusalReason(text: string | null): text is RefusalReason {
  return text !== null && Object.hasOwn(REFUSAL_REASONS, text)
}
