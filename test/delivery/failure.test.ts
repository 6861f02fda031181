import { expect, test } from 'vitest'
import {
  deliveryFailure,
  FAILURE_MEANINGS,
  isFailureCode,
  isOwnFailureCode,
} from '../../src/delivery/failure.ts'

test('a failure can be stored whatever the handler said', () => {
  const failure = deliveryFailure('bad code\u0000!', 'nul \u0000, half \ud800, and no more')
  expect(failure).toEqual({ code: 'bad_code_', message: 'nul \ufffd, half \ufffd, and no more' })
  expect(deliveryFailure('', '').code).toBe('HANDLER_ERROR')
  expect(deliveryFailure('X'.repeat(99), 'm'.repeat(9_999)).code).toHaveLength(64)
  expect(deliveryFailure('X', 'm'.repeat(9_999)).message).toHaveLength(2_000)
})

test('every code of our own is a safe code and has a meaning', () => {
  for (const [code, meaning] of Object.entries(FAILURE_MEANINGS)) {
    expect(isFailureCode(code)).toBe(true)
    expect(isOwnFailureCode(code)).toBe(true)
    expect(meaning).toMatch(/^[A-Z].*\.$/)
  }
  expect(isOwnFailureCode('ECONNRESET')).toBe(false)
  expect(isOwnFailureCode('toString')).toBe(false)
})
