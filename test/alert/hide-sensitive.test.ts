import { expect, test } from 'vitest'
import { shownError } from '../../src/alert/hide-sensitive.ts'
import { defineEvents } from '../../src/event/define-events.ts'
import { createMasking } from '../../src/event/masking.ts'
import type { UntoldLetter } from '../../src/store/alert-store.ts'

const catalogue = defineEvents({
  MemberJoined: {
    stream: 'member',
    aggregate: 'member',
    storedAs: 'MEMBER_JOINED',
    sensitive: ['email', 'cards.number', { path: 'nickname', from: ['log'] }],
  },
})

const masking = createMasking(catalogue)

const letter = (errorMessage: string, eventType = 'MEMBER_JOINED'): UntoldLetter => ({
  id: '1',
  subscription: 'mailer',
  eventId: 'e',
  stream: 'member',
  eventType,
  aggregateType: 'member',
  aggregateId: '7',
  errorCode: 'HANDLER_ERROR',
  errorMessage,
  retryCount: 4,
  failedAt: new Date(0),
  undeliverable: null,
  payload: {
    email: 'lee@example.com',
    nickname: 'minji',
    age: 7,
    cards: [{ number: 4_111_111 }, { number: '5500' }],
  },
  headers: {},
})

test('U10 what the catalogue hides from alerts is hidden in errors that quote it', () => {
  const error = '550 no such mailbox: lee@example.com, of minji, cards 4111111 and 5500, age 7'
  expect(shownError(letter(error), masking)).toBe(
    '550 no such mailbox: ***, of minji, cards *** and ***, age 7',
  )
})

test('U10 so is one that holds a password, all of it', () => {
  const email = 'host=inner.example password=s3cret'
  const quoting = { ...letter(`cannot log in with ${email}`), payload: { email } }
  expect(shownError(quoting, masking)).toBe('cannot log in with ***')
})

test('U10 an outbox that keeps them shows them', () => {
  const kept = createMasking(catalogue, { alert: 'keep' })
  expect(shownError(letter('no mailbox lee@example.com'), kept)).toBe('no mailbox lee@example.com')
})

test('of an event that the catalogue does not know every value is hidden', () => {
  const error = 'lee@example.com, minji, 4111111, 7'
  expect(shownError(letter(error, 'Unheard'), masking)).toBe('***, ***, ***, 7')
  expect(shownError(letter(error), createMasking(null))).toBe('***, ***, ***, 7')
})

test('errors are on one line, without controls and passwords, and not long', () => {
  const error = 'line one\r\n\tline two \u001b[31m postgres://app:s3cret@db/shop password=hunter2'
  const text = shownError(letter(error), masking)
  expect(text).toBe('line one line two \ufffd[31m postgres://app:***@db/shop password=***')
  expect(shownError(letter('x'.repeat(5_000)), masking)).toHaveLength(500)
})
