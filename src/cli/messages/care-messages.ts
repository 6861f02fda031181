import type { DeadLetterReason } from '../../store/dead-letter-store.ts'

/** What the commands that read and care for dead letters say: `dlq group`, `blocked`, `export`, `purge`, `amend`. */
export interface CareMessages {
  /** Of one dead letter. */
  readonly fields: Readonly<Record<'reason' | 'fingerprint', string>>
  readonly reasons: Readonly<Record<DeadLetterReason, string>>
  readonly groupColumns: Readonly<
    Record<
      'count' | 'first' | 'last' | 'subscriptions' | 'events' | 'sample' | 'fingerprint' | 'error',
      string
    >
  >
  /** How to see the dead letters of a group. */
  readonly seeGroup: string
  readonly noneBlocked: string
  readonly blockedColumns: Readonly<
    Record<'subscription' | 'key' | 'letter' | 'event' | 'blockedFor' | 'waiting' | 'error', string>
  >
  /** A number that counting was broken off at. */
  readonly atLeast: (count: string) => string
  readonly nextBlocked: (after: string) => string
  readonly exported: (count: string, file: string | null) => string
  /** Told where there is no catalogue, so that nothing of payloads is shown. */
  readonly maskedWhole: string
  readonly revealNeedsOperator: string
  readonly nothingPurged: string
  readonly purged: (count: string, operator: string) => string
  readonly amended: (id: string, eventId: string, subscription: string, operator: string) => string
  /** Told where nobody checked the payload. */
  readonly notChecked: string
  readonly needsPayload: string
  readonly onePayload: string
  readonly payloadNotJson: (reason: string) => string
  readonly noCatalogue: string
  readonly fileExists: (file: string) => string
  /** What the system's codes mean. */
  readonly fileReasons: Readonly<
    Record<'ENOENT' | 'EACCES' | 'EPERM' | 'EISDIR' | 'ENOTDIR' | 'ENOSPC' | 'EROFS', string>
  >
  readonly fileFailed: (file: string, reason: string) => string
  readonly fileTooLarge: (file: string, most: string) => string
}
