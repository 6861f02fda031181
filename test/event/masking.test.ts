import { expect, test } from 'vitest'
import { defineEvents } from '../../src/event/define-events.ts'
import { createMasking } from '../../src/event/masking.ts'

const events = defineEvents({
  MemberJoined: { stream: 'member', aggregate: 'member', sensitive: ['name', 'cards.number'] },
})
const masking = createMasking(events)

test('U10 a hidden value is hidden in a text that quotes it, also where that is JSON', () => {
  const payload = { name: 'Kim "MJ"\nMinji', cards: [{ number: 4_111_111 }], plan: 'yearly' }
  const event = { type: 'MemberJoined', payload }
  expect(masking.text(`no ${payload.name}, ${payload.plan}`, event, 'log')).toBe('no ***, yearly')
  expect(masking.text(`refused: ${JSON.stringify(payload)}`, event, 'log')).toBe(
    'refused: {"name":"***","cards":[{"number":***}],"plan":"yearly"}',
  )
})

test('U10 a value that is part of another leaves nothing of it', () => {
  const payload = { name: 'kim', cards: [{ number: 'kim-4111' }] }
  expect(masking.text('card kim-4111 of kim', { type: 'MemberJoined', payload }, 'log')).toBe(
    'card *** of ***',
  )
})

test('what is masked is a copy', () => {
  const payload = { name: 'kim', plan: 'yearly' }
  expect(masking.payload({ type: 'MemberJoined', payload }, 'export')).toEqual({
    name: '***',
    plan: 'yearly',
  })
  expect(payload.name).toBe('kim')
})
