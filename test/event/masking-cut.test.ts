import { expect, test } from 'vitest'
import { createMasking, defineEvents, unchecked } from '../../src/index.ts'
import { storableText } from '../../src/runtime/text.ts'

const events = defineEvents({
  PaymentTaken: { stream: 'shop', aggregate: 'payment', schema: unchecked<object>(), sensitive: ['card'] },
})

test('what is left of a hidden value at the end of an error that was cut is hidden too', () => {
  const masking = createMasking(events)
  const event = { type: 'PaymentTaken', payload: { card: '4111-1111-1111-1234' } }
  const stored = (length: number): string => storableText('declined: 4111-1111-1111-1234', length)
  expect(masking.text(stored(24), event, 'export')).toBe('declined: ***…')
  expect(masking.text(stored(14), event, 'export')).toBe('declined: ***…')
  // So little tells nothing, and is in every text.
  expect(masking.text(stored(13), event, 'export')).toBe('declined: 41…')
  expect(masking.text('declined: no…', event, 'export')).toBe('declined: no…')
})
