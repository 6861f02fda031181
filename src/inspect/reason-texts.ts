import type { OpenTransaction } from '../delivery/open-transaction.ts'
import type { Reason, ReasonFacts, ReasonKind } from './reason.ts'
import type { Wording } from './wording.ts'

/** A sentence for each reason, in one language. `subscription` is the name as it is shown. */
export type ReasonTexts = {
  readonly [Kind in ReasonKind]: (facts: ReasonFacts[Kind], wording: Wording) => string
}

/** The sentence for a reason. */
export function sentenceOf(reason: Reason, texts: ReasonTexts, wording: Wording): string {
  // The dictionary has for each kind a function of the facts of that kind.
  const say = texts[reason.kind] as (facts: Reason, wording: Wording) => string
  return say(reason, wording)
}

/** Reasons in English. */
export const reasonTexts: ReasonTexts = {
  delivered: ({ at, attempts }, { time, count }) =>
    `Delivered at ${time(at)}${attempts > 1 ? `, at attempt ${count(attempts)}` : ''}.`,
  dead: (facts, wording) =>
    `Failed for good${facts.deadLetter === null ? '' : `: dead letter ${facts.deadLetter}`}, ` +
    `${errorOf(facts.errorCode, facts.errorMessage)}. ${decisionOf(facts, wording)}`,
  streamed: () => 'Delivered, from the log.',
  'in-log': ({ hasLiveWorker }) =>
    hasLiveWorker
      ? 'The subscription reads the log and is not recorded as past this event: it comes, or came a moment ago.'
      : 'The subscription reads the log, and no live worker does that for it.',
  leased: ({ worker, until, attempt, maxAttempts }, { time, count }) =>
    `In hand of worker ${worker} until ${time(until)}: attempt ${count(attempt)} of ${count(maxAttempts)}.`,
  lapsed: ({ worker, until, hasLiveWorker }, { time }) =>
    `Worker ${worker} had it in hand and its lease lapsed at ${time(until)}: ` +
    (hasLiveWorker
      ? 'another worker takes it back within seconds.'
      : 'no live worker is there to take it back.'),
  paused: ({ by, at }, { time }) => `The subscription is paused, by ${by}, since ${time(at)}.`,
  joining: ({ waitsFor }, wording) =>
    `The subscription is joining${waitsFor === null ? '' : ` and waits for ${holderOf(waitsFor, wording)}`}: ` +
    'the event comes once it has joined.',
  'no-worker': () => 'No live worker serves the subscription.',
  behind: ({ eventId, status, redriveAt }, { time }) => {
    if (status !== 'DEAD') return `Behind event ${eventId} of the same key, which is ${status}.`
    const waits =
      redriveAt instanceof Date
        ? `is delivered again by a re-drive policy at ${time(redriveAt)}, as long as the code has that policy`
        : 'waits for a person'
    return `Behind event ${eventId} of the same key, which failed for good and ${waits}.`
  },
  retrying: ({ at, attempts, maxAttempts, errorCode, errorMessage }, { time, count }) =>
    `Waits for its next attempt at ${time(at)}, after ${count(attempts)} of ${count(maxAttempts)}: ${errorOf(errorCode, errorMessage)}.`,
  suspect: ({ at }, { time }) =>
    'Its worker vanished while it had this and others in hand: it runs apart from them next time' +
    `${at === null ? '' : `, not before ${time(at)}`}.`,
  ready: () => 'Nothing is in its way: the next claim that has room takes it.',
  replaced: ({ by }) => `Event ${by} was put in its place for this subscription: ask for that one.`,
  missing: () => 'The subscription ought to have it and has no delivery of it. See: commitpost verify',
  'before-start': () => 'Not for this subscription: it began after the event was published.',
  'not-taken': () => 'Not for this subscription: it does not take such events.',
}

function decisionOf({ deadLetter, resolvedBy, redriveAt }: ReasonFacts['dead'], { time }: Wording): string {
  if (deadLetter === null) return 'Its dead letter was decided on and has been purged.'
  if (resolvedBy !== null) return `Settled by ${resolvedBy}.`
  return redriveAt instanceof Date
    ? `A re-drive policy delivers it again at ${time(redriveAt)}, as long as the code has that policy.`
    : 'It waits for a person.'
}

function errorOf(code: string | null, message: string | null): string {
  if (code === null) return 'no error is recorded'
  return message === null ? code : `${code}: ${withoutFullStop(message)}`
}

function withoutFullStop(message: string): string {
  return message.replace(/\.$/, '')
}

function holderOf({ pid, name, seconds }: OpenTransaction, { age }: Wording): string {
  const who =
    pid === null
      ? `the prepared transaction "${name}"`
      : `process ${pid}${name === null ? '' : ` ("${name}")`}`
  return seconds === null ? who : `${who}, open for ${age(seconds)}`
}
