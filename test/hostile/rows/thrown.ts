import { NonRetryableError } from '../../../src/index.ts'
import { deliver } from '../deliver.ts'
import { type Behaviour, borne, type Group } from '../row.ts'
import { angry, circular, revoked } from '../things.ts'
import { dead } from './handled.ts'

/** A handler that throws this after its only attempt. */
const throws = (does: string, code: string, message: string, value: () => unknown): Behaviour =>
  dead(`a handler throws ${does}`, code, `The only attempt failed with: ${message}`, () => {
    throw value()
  })

export const thrown: Group = {
  title: 'What handlers throw',
  rows: [
    throws('null', 'HANDLER_ERROR', 'null was thrown', () => null),
    throws('undefined', 'HANDLER_ERROR', 'undefined was thrown', () => undefined),
    throws("''", 'HANDLER_ERROR', 'an empty string was thrown', () => ''),
    throws("'busy'", 'HANDLER_ERROR', 'busy', () => 'busy'),
    throws('5', 'HANDLER_ERROR', '5 was thrown', () => 5),
    throws('1n', 'HANDLER_ERROR', '1 was thrown', () => 1n),
    throws('Symbol(x)', 'HANDLER_ERROR', 'Symbol(x) was thrown', () => Symbol('x')),
    throws('a function', 'FUNCTION', 'a function was thrown', () => () => 1),
    throws('{}', 'HANDLER_ERROR', '{} was thrown', () => ({})),
    throws(
      'an object that is its own cause',
      'HANDLER_ERROR',
      'an object without a message was thrown',
      circular,
    ),
    throws(
      'a proxy that throws whenever it is touched',
      'HANDLER_ERROR',
      'an object without a message was thrown',
      angry,
    ),
    throws('a revoked proxy', 'HANDLER_ERROR', 'an object without a message was thrown', revoked),
    throws('an error whose message is a getter that throws', 'HANDLER_ERROR', 'Error', () =>
      Object.defineProperty(new Error('x'), 'message', {
        get: () => {
          throw new Error('no')
        },
      }),
    ),
    throws('an error whose errors are a revoked proxy', 'HANDLER_ERROR', 'x', () =>
      Object.assign(new Error('x'), { errors: revoked() }),
    ),
    throws('an error with a NUL in its message', 'HANDLER_ERROR', 'a\ufffdb', () => new Error('a\0b')),
    throws(
      'an error with half a character in its message',
      'HANDLER_ERROR',
      'a\ufffd',
      () => new Error('a\ud800'),
    ),
    throws(
      'an error with terminal controls in its message',
      'HANDLER_ERROR',
      '\ufffd[2J',
      () => new Error('\u001b[2J'),
    ),
    throws('an error whose code is an object', 'HANDLER_ERROR', 'x', () =>
      Object.assign(new Error('x'), { code: {} }),
    ),
    throws('an error whose code has blanks', 'HANDLER_ERROR', 'x', () =>
      Object.assign(new Error('x'), { code: 'a b\0' }),
    ),
    throws(
      'an error with a password in a URL',
      'HANDLER_ERROR',
      'cannot reach postgres://***@db/x',
      () => new Error('cannot reach postgres://app:s3cret@db/x'),
    ),
    borne(
      'a handler throws a message of 1 MB',
      'kept, cut to 2,000 characters',
      ['DEAD', 2_000, true],
      async () => {
        const { status, message } = await deliver({
          handler: () => {
            throw new Error('x'.repeat(1_000_000))
          },
        })
        return [status, message?.length, message?.startsWith('The only attempt failed with: xxx')]
      },
    ),
    borne(
      'a handler throws an AggregateError of 1,000',
      'kept: the first five, and how many more',
      'The only attempt failed with: AggregateError: all failed [e0 | e1 | e2 | e3 | e4 | and 995 more]',
      async () => {
        const { message } = await deliver({
          handler: () => {
            throw new AggregateError(
              Array.from({ length: 1_000 }, (_, n) => new Error(`e${n}`)),
              'all failed',
            )
          },
        })
        return message
      },
    ),
    borne(
      'new NonRetryableError with a code of 300 characters',
      'dead letter NON_RETRYABLE',
      ['DEAD', 'NON_RETRYABLE'],
      async () => {
        const { status, code } = await deliver({
          handler: () => {
            throw new NonRetryableError('no', { failureCode: 'x'.repeat(300) })
          },
        })
        return [status, code]
      },
    ),
  ],
}
