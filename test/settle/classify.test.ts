import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import type { RetryAdvice } from '../../src/delivery/delivery.ts'
import type { OutboxEvent } from '../../src/event/event.ts'
import {
  CommitpostError,
  DuplicateEventError,
  HandlerTimeoutError,
  InvalidOptionsError,
  NonRetryableError,
  NotInTransactionError,
  RetryLaterError,
  UnknownOutcomeError,
} from '../../src/runtime/errors.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { classifyError, createClassify } from '../../src/settle/classify.ts'
import { parseRetryAfter } from '../../src/settle/http-failure.ts'

const NOW = new Date('2026-01-01T00:00:00.000Z')
const retry: RetryAdvice = { kind: 'by-policy' }
const never: RetryAdvice = { kind: 'never' }
const after = (delayMs: number): RetryAdvice => ({ kind: 'after', delayMs })
const withFacts = (facts: object, message = 'boom'): Error => Object.assign(new Error(message), facts)

class OrderNotFound extends Error {}
class HTTPTeapotError extends Error {
  override name = 'HTTPTeapotError'
}

const table: readonly (readonly [string, unknown, string, RetryAdvice])[] = [
  // what we throw ourselves
  ['NonRetryableError', new NonRetryableError('no'), 'NON_RETRYABLE', never],
  [
    'NonRetryableError with a code',
    new NonRetryableError('no', { failureCode: 'CARD_REFUSED' }),
    'CARD_REFUSED',
    never,
  ],
  ['RetryLaterError', new RetryLaterError('wait', { afterMs: 5_000 }), 'RETRY_LATER', after(5_000)],
  [
    'RetryLaterError of another copy',
    withFacts({ code: 'RETRY_LATER', afterMs: 7 }),
    'RETRY_LATER',
    after(7),
  ],
  ['NonRetryableError of another copy', withFacts({ code: 'NON_RETRYABLE' }), 'NON_RETRYABLE', never],
  [
    'HandlerTimeoutError',
    new HandlerTimeoutError({ eventId: 'e', subscription: 's' }, 10),
    'HANDLER_TIMEOUT',
    retry,
  ],
  ['an unreadable payload', new CommitpostError('PAYLOAD_INVALID', 'x'), 'PAYLOAD_INVALID', never],
  ['a failed upcast', new CommitpostError('UPCAST_FAILED', 'x'), 'UPCAST_FAILED', never],
  ['no handler', new CommitpostError('NO_HANDLER', 'x'), 'NO_HANDLER', never],
  ['a bad publish inside the handler', new CommitpostError('INVALID_EVENT', 'x'), 'INVALID_EVENT', never],
  ['publish outside a transaction', new NotInTransactionError(), 'NOT_IN_TRANSACTION', never],
  ['bad options', new InvalidOptionsError('x', ['y']), 'INVALID_OPTIONS', never],
  ['a duplicate event', new DuplicateEventError(['e']), 'DUPLICATE_EVENT', retry],
  ['an unknown outcome', new UnknownOutcomeError('commit'), 'UNKNOWN_OUTCOME', retry],
  // network
  ['ECONNREFUSED', withFacts({ code: 'ECONNREFUSED' }), 'ECONNREFUSED', retry],
  ['ECONNRESET', withFacts({ code: 'ECONNRESET' }), 'ECONNRESET', retry],
  ['ETIMEDOUT', withFacts({ code: 'ETIMEDOUT' }), 'ETIMEDOUT', retry],
  ['EAI_AGAIN', withFacts({ code: 'EAI_AGAIN' }), 'EAI_AGAIN', retry],
  ['ENOTFOUND', withFacts({ code: 'ENOTFOUND' }), 'ENOTFOUND', retry],
  ['EPIPE', withFacts({ code: 'EPIPE' }), 'EPIPE', retry],
  ['undici', withFacts({ code: 'UND_ERR_SOCKET' }), 'UND_ERR_SOCKET', retry],
  [
    'a failed fetch',
    new TypeError('fetch failed', { cause: withFacts({ code: 'ECONNREFUSED' }) }),
    'ECONNREFUSED',
    retry,
  ],
  ['AbortError', new DOMException('aborted', 'AbortError'), 'ABORT_ERROR', retry],
  ['TimeoutError', new DOMException('slow', 'TimeoutError'), 'TIMEOUT_ERROR', retry],
  // HTTP
  ['400 by status', withFacts({ status: 400 }), 'HTTP_400', never],
  ['401 by statusCode', withFacts({ statusCode: 401 }), 'HTTP_401', never],
  ['403', withFacts({ status: 403 }), 'HTTP_403', never],
  [
    '404 of axios',
    withFacts({ code: 'ERR_BAD_REQUEST', response: { status: 404 } }),
    'ERR_BAD_REQUEST',
    never,
  ],
  ['409', withFacts({ status: 409 }), 'HTTP_409', never],
  ['422 of got', withFacts({ response: { statusCode: 422 } }), 'HTTP_422', never],
  ['408', withFacts({ status: 408 }), 'HTTP_408', retry],
  ['425', withFacts({ status: 425 }), 'HTTP_425', retry],
  ['429 alone', withFacts({ status: 429 }), 'HTTP_429', retry],
  [
    '429 with seconds',
    withFacts({ status: 429, headers: { 'retry-after': '30' } }),
    'HTTP_429',
    after(30_000),
  ],
  [
    '429 with Headers',
    withFacts({ response: { status: 429, headers: new Headers({ 'Retry-After': '2' }) } }),
    'HTTP_429',
    after(2_000),
  ],
  ['503 with a number', withFacts({ status: 503, headers: { 'Retry-After': 4 } }), 'HTTP_503', after(4_000)],
  [
    '503 with a date',
    withFacts({ status: 503, headers: { 'retry-after': 'Thu, 01 Jan 2026 00:02:00 GMT' } }),
    'HTTP_503',
    after(120_000),
  ],
  [
    '503 with a date gone by',
    withFacts({ status: 503, headers: { 'retry-after': 'Wed, 31 Dec 2025 23:00:00 GMT' } }),
    'HTTP_503',
    after(0),
  ],
  [
    '503 for ten years',
    withFacts({ status: 503, headers: { 'retry-after': '315360000' } }),
    'HTTP_503',
    after(86_400_000),
  ],
  ['503 with nonsense', withFacts({ status: 503, headers: { 'retry-after': 'soon' } }), 'HTTP_503', retry],
  ['500', withFacts({ status: 500 }), 'HTTP_500', retry],
  ['502', withFacts({ status: 502 }), 'HTTP_502', retry],
  ['504', withFacts({ status: 504 }), 'HTTP_504', retry],
  ['an AWS throttle', withFacts({ name: 'SlowDown', $metadata: { httpStatusCode: 503 } }), 'HTTP_503', retry],
  ['a status that is none', withFacts({ status: 200 }), 'HANDLER_ERROR', retry],
  ['a status in words', withFacts({ status: 'failed' }), 'HANDLER_ERROR', retry],
  // validation
  ['zod', z.object({ id: z.string() }).safeParse({}).error, 'ZOD_ERROR', never],
  ['yup, joi', withFacts({ name: 'ValidationError' }), 'VALIDATION_ERROR', never],
  ['valibot', withFacts({ name: 'ValiError' }), 'VALI_ERROR', never],
  [
    'Standard Schema issues',
    withFacts({ issues: [{ message: 'too short', path: ['id'] }] }),
    'HANDLER_ERROR',
    never,
  ],
  ['issues of another kind', withFacts({ issues: 3 }), 'HANDLER_ERROR', retry],
  // databases
  ['serialization failure', withFacts({ code: '40001' }), '40001', retry],
  ['deadlock', withFacts({ code: '40P01' }), '40P01', retry],
  ['connection failure', withFacts({ code: '08006' }), '08006', retry],
  ['too many connections', withFacts({ code: '53300' }), '53300', retry],
  ['admin shutdown', withFacts({ code: '57P01' }), '57P01', retry],
  ['lock not available', withFacts({ code: '55P03' }), '55P03', retry],
  ['unique violation, perhaps a race', withFacts({ code: '23505' }), '23505', retry],
  ['a string too long', withFacts({ code: '22001' }), '22001', never],
  ['not a number', withFacts({ code: '22P02' }), '22P02', never],
  [
    'MySQL data too long',
    withFacts({ code: 'ER_DATA_TOO_LONG', sqlState: '22001' }),
    'ER_DATA_TOO_LONG',
    never,
  ],
  ['MySQL deadlock', withFacts({ code: 'ER_LOCK_DEADLOCK', sqlState: '40001' }), 'ER_LOCK_DEADLOCK', retry],
  [
    'a wrapped database error',
    new Error('insert failed', { cause: withFacts({ code: '22001' }) }),
    '22001',
    never,
  ],
  // nothing known
  ['a plain error', new Error('boom'), 'HANDLER_ERROR', retry],
  ['TypeError', new TypeError('x is not a function'), 'TYPE_ERROR', retry],
  ['a class of the user', new OrderNotFound('42'), 'ORDER_NOT_FOUND', retry],
  ['a name with capitals', new HTTPTeapotError('short and stout'), 'HTTP_TEAPOT_ERROR', retry],
  ["an error's own code", withFacts({ code: 'insufficient_funds' }), 'insufficient_funds', retry],
  ['a code too long to be one', withFacts({ code: 'x'.repeat(65) }), 'HANDLER_ERROR', retry],
  ['a code that is prose', withFacts({ code: 'it went wrong' }), 'HANDLER_ERROR', retry],
  ['null', null, 'HANDLER_ERROR', retry],
  ['undefined', undefined, 'HANDLER_ERROR', retry],
  ['a string', 'just text', 'HANDLER_ERROR', retry],
  ['a number', 42, 'HANDLER_ERROR', retry],
  ['an object', { some: 'thing' }, 'HANDLER_ERROR', retry],
  ['an AggregateError', new AggregateError([new Error('a')], 'all failed'), 'AGGREGATE_ERROR', retry],
]

describe('the defaults', () => {
  for (const [name, error, code, advice] of table) {
    test(`E10 ${name} is ${advice.kind}`, () => {
      const classified = classifyError(error, NOW)
      expect(classified).toEqual({ code, message: expect.any(String), retry: advice })
      expect(classified.message).not.toBe('')
    })
  }

  test('an error that bites when it is looked at is still classified', () => {
    const vicious = new Proxy(new Error('x'), {
      get() {
        throw new Error('do not touch')
      },
    })
    expect(classifyError(vicious, NOW)).toMatchObject({ code: 'HANDLER_ERROR', retry })
  })

  test('causes that run in a circle end', () => {
    const a = new Error('a')
    const b = new Error('b', { cause: a })
    a.cause = b
    expect(classifyError(a, NOW)).toMatchObject({ code: 'HANDLER_ERROR', message: 'a; caused by b' })
  })

  test('Retry-After is read as RFC 9110 has it, and nothing else', () => {
    const nowMs = NOW.getTime()
    expect(['0', '1.5', ' 7 ', 3].map((value) => parseRetryAfter(value, nowMs))).toEqual([
      0, 1_500, 7_000, 3_000,
    ])
    expect(['', '-5', '2026', 'NaN', null, {}, '1e3'].map((value) => parseRetryAfter(value, nowMs))).toEqual([
      null,
      null,
      2_026_000,
      null,
      null,
      null,
      null,
    ])
  })
})

describe("a user's own classifier", () => {
  const event = {} as OutboxEvent
  const classify = (answer: () => unknown): RetryAdvice =>
    createClassify(new ManualClock(NOW), answer as never)(new NonRetryableError('no'), event).retry

  test('E10 is asked first', () => {
    expect(classify(() => 'retry')).toEqual(retry)
    expect(classify(() => 'dead')).toEqual(never)
    expect(classify(() => ({ retryAfterMs: 9 }))).toEqual(after(9))
  })

  test('leaves the rest to the defaults, also when it fails', () => {
    for (const answer of [
      undefined,
      null,
      'maybe',
      { retryAfterMs: -1 },
      { retryAfterMs: 'x' },
      Promise.resolve('retry'),
    ]) {
      expect(classify(() => answer)).toEqual(never)
    }
    expect(
      classify(() => {
        throw new Error('a bug')
      }),
    ).toEqual(never)
  })

  test('sees the error itself and the event', () => {
    const seen: unknown[] = []
    const error = new Error('x')
    const own = (...args: unknown[]): undefined => {
      seen.push(...args)
    }
    createClassify(new ManualClock(NOW), own)(error, event)
    expect(seen).toEqual([error, event])
  })
})
