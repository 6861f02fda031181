import { DEAD_LETTER_REASONS } from '../../store/dead-letter-store.ts'
import type { CareMessages } from './care-messages.ts'

/** English. */
export const careEn: CareMessages = {
  fields: { reason: 'Reason', fingerprint: 'Fingerprint' },
  reasons: DEAD_LETTER_REASONS,
  groupColumns: {
    count: 'COUNT',
    first: 'FIRST',
    last: 'LAST',
    subscriptions: 'SUBSCRIPTIONS',
    events: 'EVENTS',
    sample: 'SAMPLE',
    fingerprint: 'FINGERPRINT',
    error: 'ERROR',
  },
  seeGroup: 'See those of a group: commitpost dlq list --fingerprint FINGERPRINT',
  noneBlocked: 'No key is blocked by a dead letter.',
  blockedColumns: {
    subscription: 'SUBSCRIPTION',
    key: 'KEY',
    letter: 'DEAD LETTER',
    event: 'EVENT',
    blockedFor: 'BLOCKED FOR',
    waiting: 'WAITING',
    error: 'ERROR',
  },
  atLeast: (count) => `${count}+`,
  nextBlocked: (after) => `More: add --after ${after}`,
  exported: (count, file) => `Dead letters exported${file === null ? '' : ` to ${file}`}: ${count}.`,
  maskedWhole:
    'Nothing of payloads is shown: without --config FILE nobody can tell what in them is sensitive. With --reveal and --operator NAME all of it is, and that is recorded.',
  revealNeedsOperator: '--reveal needs --operator NAME: who looks at what is sensitive is recorded.',
  nothingPurged: 'No dead letter was resolved that long ago: nothing was removed.',
  purged: (count, operator) => `Resolved dead letters removed: ${count}. Recorded for ${operator}.`,
  amended: (id, eventId, subscription, operator) =>
    `Dead letter ${id}: event ${eventId} takes its place for "${subscription}". Recorded for ${operator}.`,
  notChecked:
    'The payload was not checked. With --config FILE it is checked by the schema of your catalogue.',
  needsPayload: 'A payload is missing: give --payload JSON or --payload-file FILE.',
  onePayload: 'Give --payload or --payload-file, not both.',
  payloadNotJson: (reason) => `The payload is not JSON: ${reason}`,
  noCatalogue: 'its outbox has no catalogue: it must be what createOutbox made',
  fileExists: (file) => `There is a file ${file} already. Name another, or remove that one.`,
  fileReasons: {
    ENOENT: 'there is no such file or directory',
    EACCES: 'it may not be read or written by this user',
    EPERM: 'it may not be read or written by this user',
    EISDIR: 'it is a directory',
    ENOTDIR: 'a part of its path is no directory',
    ENOSPC: 'the disk is full',
    EROFS: 'the disk may only be read',
  },
  fileFailed: (file, reason) => `The file ${file} cannot be used: ${reason}`,
  fileTooLarge: (file, most) =>
    `The file ${file} is too large for a payload: at most ${most} bytes are read.`,
}
