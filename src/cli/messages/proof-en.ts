import { findingTexts } from '../../inspect/finding-texts.ts'
import { reasonTexts } from '../../inspect/reason-texts.ts'
import type { ProofMessages } from './proof.ts'

const BROKEN = {
  changed: 'its columns do not give the hash it carries: it was changed',
  unlinked:
    'it does not carry the hash of the entry before it: that one was replaced, or this one put in its place',
  missing: 'it is not there, and later ones are',
  'cut-off': 'it and all after it are not there',
  added: 'it was added behind the end of the chain',
} as const

/** What `verify`, `why`, `doctor` and `audit verify` say in English. */
export const proofEn: ProofMessages = {
  verify: {
    columns: {
      subscription: 'SUBSCRIPTION',
      matched: 'MATCHED',
      done: '= DONE',
      pending: '+ PENDING',
      processing: '+ PROCESSING',
      dead: '+ DEAD',
      archived: '+ ARCHIVED',
      streamed: '+ STREAMED',
    },
    exceptions: {
      missing: (subscription, count) =>
        `${subscription}: events that it is meant to have and has not: ${count}`,
      surplus: (subscription, count) =>
        `${subscription}: deliveries without an event, or of one that it is not meant to have: ${count}`,
      impossible: (subscription, count) =>
        `${subscription}: deliveries in a state that they cannot have come to: ${count}`,
    },
    notAllNamed: (count) => `… and ${count} more: name more of them with --limit`,
    awaited: (subscription, count) =>
      `Subscription "${subscription}" is joining; events that it will get and are not counted yet: ${count}.`,
    unread: (subscription, count) =>
      `Subscription "${subscription}" reads the log; events that are not recorded as handled yet: ${count}.`,
    removed: (subscription) =>
      `Subscription ${subscription} was deleted by force. Nobody gets what is published for it, and what it had is delivered to nobody.`,
    states: { active: null, joining: 'joining', retired: 'retired', removed: 'deleted' },
    verdict: (holds, at) => `${holds ? 'It holds' : 'It does NOT hold'}, as of ${at}.`,
  },
  why: {
    event: (eventId, eventType, stream, aggregate, at) =>
      `Event ${eventId}: ${eventType} of ${aggregate} in ${stream}, published at ${at}`,
    unknown: (eventId) =>
      `There is no event ${eventId} here. It was never published, its transaction was rolled back or has not committed ` +
      'yet (from outside these look the same), or retention has removed it since.',
    archived: (eventId, at, subscriptions, archive) =>
      `Event ${eventId}, published at ${at}, was archived ` +
      `${subscriptions === '' ? 'and had been taken by no subscription' : `after it had been delivered to ${subscriptions}`}. ` +
      (archive === null ? 'It was purged from its archive since.' : `It is in ${archive}.`),
    letterRemains: (id, subscription, failedAt) =>
      `Dead letter ${id} of subscription "${subscription}" keeps a copy of it: it failed at ${failedAt}. See: commitpost dlq show ${id}`,
    unmatched: 'No subscription takes events of this stream and type: nobody will get it.',
    reasons: reasonTexts,
  },
  doctor: {
    severities: { ok: 'ok', warning: 'warning', problem: 'PROBLEM' },
    checks: {
      schema: 'schema',
      objects: 'indexes',
      rights: 'rights',
      bloat: 'bloat',
      partitions: 'partitions',
      xmin: 'xmin',
      durability: 'durability',
      clock: 'clock',
      leases: 'leases',
      pauses: 'pauses',
      types: 'types',
      workers: 'workers',
    },
    findings: findingTexts,
    summary: (problems, warnings) => `Problems: ${problems}, warnings: ${warnings}.`,
  },
  audit: {
    holds: (entries) => `The operator log holds: ${entries} entries, each with the hash of the one before.`,
    hash: (hash) => `Hash of the last entry: ${hash}`,
    broken: (entry, id, problem) =>
      `The operator log is broken at entry ${entry}${id === null ? '' : ` (id ${id})`}: ${BROKEN[problem]}.`,
    lastGood: (hash) => `Everything before it holds, up to the hash ${hash}`,
    exportsHold: (entries) => `The chain of exports holds: ${entries} exports.`,
    exportsHash: (hash) => `Hash of the last export: ${hash}`,
    exportsBroken: (entry, id, problem) =>
      `The chain of exports is broken at export ${entry}${id === null ? '' : ` (id ${id})`}: ${BROKEN[problem]}.`,
  },
}
