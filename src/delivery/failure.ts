import type { OutboxEvent } from '../event/event.ts'
import { storableText } from '../runtime/text.ts'
import type { DeliveryFailure, RetryAdvice } from './delivery.ts'

/** A code this library itself fails a delivery with. */
export type OwnFailureCode =
  | 'NO_HANDLER'
  | 'UNKNOWN_EVENT_TYPE'
  | 'PAYLOAD_INVALID'
  | 'UPCAST_FAILED'
  | 'HANDLER_TIMEOUT'
  | 'HANDLER_ERROR'
  | 'NON_RETRYABLE'
  | 'RETRY_LATER'
  | 'NOT_COMMITTED'
  | 'NO_TOPIC'
  | 'NO_KEY'
  | 'TRANSPORT_ERROR'
  | 'MARKED_FAILED'
  | 'CRASHED'
  | 'SUBSCRIPTION_RETIRED'
  | 'MOVED_ASIDE'
  | 'NO_SUBSCRIPTION'

/**
 * The codes under which this library itself fails a delivery, and what each tells the person on call.
 * A handler's own errors add theirs: an error's code or class name.
 */
export const FAILURE_MEANINGS: Readonly<Record<OwnFailureCode, string>> = {
  NO_HANDLER: 'The subscription takes this event but has no handler for its type.',
  UNKNOWN_EVENT_TYPE: 'The catalogue of the running code does not know this event type.',
  PAYLOAD_INVALID: 'The stored payload does not fit the schema of the running code.',
  UPCAST_FAILED: 'The stored payload could not be brought up to the version of the running code.',
  HANDLER_TIMEOUT: 'The handler did not finish within the time the subscription allows.',
  HANDLER_ERROR: 'The handler threw something that carries no code of its own.',
  NON_RETRYABLE: 'The handler said that trying again cannot help.',
  RETRY_LATER: 'The handler asked to be tried again later.',
  NOT_COMMITTED:
    'The handler returned, but the transaction it passed to ctx.complete was rolled back. Let the error that rolled it ' +
    'back reach the worker.',
  NO_TOPIC: 'The transport has no topic for this event, or none that the broker can have.',
  NO_KEY: 'What chooses the keys of messages returned something that is not text for this event.',
  TRANSPORT_ERROR: 'The transport threw, which it must not: nobody knows whether the event was sent.',
  MARKED_FAILED: 'Whoever worked on it through the repository said that it failed.',
  CRASHED: 'The worker vanished each time it ran this delivery, also when it ran alone.',
  SUBSCRIPTION_RETIRED: 'The subscription was retired while this delivery was still open.',
  MOVED_ASIDE: 'An operator moved its blocked ordering key aside before this delivery had its turn.',
  NO_SUBSCRIPTION: 'No subscription takes this event; it was set aside because the worker was told to.',
}

/** The failure of an attempt whose handler returned, but whose completion of the delivery was rolled back. */
export const NOT_COMMITTED: DeliveryFailure = {
  code: 'NOT_COMMITTED' satisfies OwnFailureCode,
  message: FAILURE_MEANINGS.NOT_COMMITTED,
}

/** An error as it will be stored, and what it says about trying again. */
export interface ClassifiedFailure extends DeliveryFailure {
  readonly retry: RetryAdvice
}

/** Turns anything thrown into a classified failure. Never throws itself. */
export type Classify = (error: unknown, event: OutboxEvent) => ClassifiedFailure

const LONGEST_CODE = 64
const SAFE_CODE = /^[A-Za-z0-9_.:-]{1,64}$/

/** True for a code of our own, as against one a handler's error brought along. */
export function isOwnFailureCode(code: string): code is OwnFailureCode {
  return Object.hasOwn(FAILURE_MEANINGS, code)
}

/** True for text that can serve as a code: short, no blanks, safe in a metric's label and in a URL. */
export function isFailureCode(text: unknown): text is string {
  return typeof text === 'string' && SAFE_CODE.test(text)
}

/** A failure that can always be stored, whatever the texts contain. */
export function deliveryFailure(code: string, message: string): DeliveryFailure {
  return { code: safeCode(code), message: storableText(message) }
}

function safeCode(code: string): string {
  if (SAFE_CODE.test(code)) return code
  const kept = code.replaceAll(/[^A-Za-z0-9_.:-]+/g, '_').slice(0, LONGEST_CODE)
  return kept === '' ? 'HANDLER_ERROR' : kept
}
