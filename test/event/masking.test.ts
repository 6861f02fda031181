import { expect, test } from 'vitest'
import { defineEvents } from '../../src/event/define-events.ts'
import { createMasking } from '../../src/event/masking.ts'
import { describeError } from '../../src/runtime/text.ts'

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

test.each([
  ['kim+mj@example.com', (name: string) => `https://mail/send?to=${encodeURIComponent(name)}`],
  [
    'Kim Minji (MJ)',
    (name: string) => `https://mail/send?${new URLSearchParams({ to: name }).toString()}&again=1`,
  ],
  ['김민지 100%', (name: string) => new URL(`https://members/${name.replace('%', '%25')}/cards`).href],
  ['half \ud83d of it', (name: string) => new URL(`https://members/?name=${name}`).href],
])('U10 a hidden value is hidden where a URL in the text has it: %s', (name, urlOf) => {
  const text = `502 from ${urlOf(name)}`
  const shown = masking.text(text, { type: 'MemberJoined', payload: { name } }, 'log')
  expect(shown).toMatch(/^502 from https:\/\/\S+\*\*\*/)
  for (const part of ['kim', 'Minji', 'EA%B9%80', 'half']) expect(shown).not.toContain(part)
})

test('U10 a value that is part of another leaves nothing of it', () => {
  const payload = { name: 'kim', cards: [{ number: 'kim-4111' }] }
  expect(masking.text('card kim-4111 of kim', { type: 'MemberJoined', payload }, 'log')).toBe(
    'card *** of ***',
  )
})

test.each([
  ['a URL with a password', 'https://kim:s3cret@hooks.example.com/T0/B1', ['s3cret', 'hooks', 'T0']],
  ['controls', 'first\u0007second\u0085third', ['first', 'second', 'third']],
  ['half a character', 'first\ud83dsecond', ['first', 'second']],
])(
  'U10 a hidden value is hidden where the error that quotes it had to be changed to be stored: %s',
  (_, name, parts) => {
    const event = { type: 'MemberJoined', payload: { name } }
    for (const thrown of [new Error(`cannot reach ${name} now`), { refused: name }]) {
      const shown = masking.text(describeError(thrown), event, 'log')
      expect(shown).toContain('***')
      for (const part of parts) expect(shown).not.toContain(part)
    }
  },
)

test('U10 nothing is left of a hidden value in whose middle a long text was cut', () => {
  const number = '4111-2222-3333-4444'
  const event = { type: 'MemberJoined', payload: { cards: [{ number }] } }
  for (let filler = 440; filler < 510; filler += 1) {
    const shown = masking.text(describeError({ filler: 'x'.repeat(filler), number }), event, 'log')
    expect(shown).not.toContain('4111')
  }
})

test('what is masked is a copy', () => {
  const payload = { name: 'kim', plan: 'yearly' }
  expect(masking.payload({ type: 'MemberJoined', payload }, 'export')).toEqual({
    name: '***',
    plan: 'yearly',
  })
  expect(payload.name).toBe('kim')
})
