import fc from 'fast-check'
import { expect, test } from 'vitest'
import { matchesPattern } from '../../src/event/pattern.ts'

const table: readonly (readonly [string, string, boolean])[] = [
  ['shop.*', 'shop.order.event', true],
  ['shop.*', 'shop.', true],
  ['shop.*', 'shop', false],
  ['*', '', true],
  ['*', 'anything', true],
  ['*.ticker', 'upbit.ticker', true],
  ['*.ticker', 'upbit.ticker.v2', false],
  ['a*b*c', 'a-b-c', true],
  ['a*b*c', 'abc', true],
  ['a*b*c', 'ac', false],
  ['ab*ba', 'aba', false],
  ['a*a', 'a', false],
  ['shop.order', 'shop.order', true],
  ['shop.order', 'shopXorder', false],
  ['*bb*b', 'abbb', true],
  ['a**b', 'ab', true],
]

test.each(table)('%s on %s is %s', (pattern, name, expected) => {
  expect(matchesPattern(pattern, name)).toBe(expected)
})

test('agrees with the regular expression it stands for', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '.'), maxLength: 8 })
  const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '.', '*'), maxLength: 6 })
  fc.assert(
    fc.property(pattern, text, (glob, name) => {
      const expression = new RegExp(`^${glob.replaceAll('.', '\\.').replaceAll('*', '.*')}$`)
      expect(matchesPattern(glob, name)).toBe(expression.test(name))
    }),
    { numRuns: 2_000 },
  )
})
