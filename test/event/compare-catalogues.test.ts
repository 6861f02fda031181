import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { compareCatalogues } from '../../src/event/compare-catalogues.ts'
import type { EventDefinition } from '../../src/event/definition.ts'
import { unchecked } from '../../src/index.ts'
import { changes, described } from './compare-support.ts'

describe('L5 a breaking change of a payload', () => {
  const before = described({ OrderPlaced: { schema: z.object({ amount: z.number() }) } })
  const schema = z.object({ amount: z.string() })
  const step = (old: object): unknown => old

  test('L5 is accepted when the version was raised and an upcaster leads there', () => {
    const [finding] = compareCatalogues(
      before,
      described({ OrderPlaced: { schema, version: 2, upcast: { 1: step } } }),
    )
    expect(finding).toMatchObject({ kind: 'type-changed', breaking: false })
    expect(finding?.message).toContain('version 1 is upcast to 2')
  })

  test('L5 is refused when only the version was raised', () => {
    expect(changes(before, described({ OrderPlaced: { schema, version: 2 } }))).toEqual([
      'type-changed payload.amount !',
    ])
  })

  test('L5 is refused when upcasters start too late', () => {
    const late = { schema, version: 3, oldestVersion: 2, upcast: { 2: step } }
    expect(changes(before, described({ OrderPlaced: late }))).toEqual([
      'oldest-version-raised oldestVersion !',
      'type-changed payload.amount !',
    ])
  })
})

describe('L5 changes of the catalogue', () => {
  const table: readonly (readonly [
    string,
    Partial<EventDefinition>,
    Partial<EventDefinition>,
    readonly string[],
  ])[] = [
    ['another stream', {}, { stream: 'other' }, ['stream-changed stream !']],
    ['another aggregate', {}, { aggregate: 'other' }, ['aggregate-changed aggregate !']],
    ['another stored type', {}, { storedAs: 'ORDER_PLACED' }, ['stored-type-changed storedAs !']],
    ['a lower version', { version: 2 }, { version: 1 }, ['version-decreased version !']],
    ['a higher version', { version: 1 }, { version: 2 }, []],
    ['a sequence that ends', { sequence: true }, {}, ['sequence-changed sequence !']],
    ['a sequence that begins', {}, { sequence: true }, ['sequence-changed sequence']],
    ['a schema that is new', {}, { schema: z.object({}) }, ['schema-added payload']],
    ['a schema that is gone', { schema: z.object({}) }, {}, ['schema-removed payload !']],
    ['a field that is no longer hidden', { sensitive: ['email'] }, {}, ['no-longer-sensitive email']],
    ['a field that is hidden from now on', {}, { sensitive: ['email'] }, []],
  ]
  test.each(table)('%s', (_, before, after, expected) => {
    expect(changes(described({ OrderPlaced: before }), described({ OrderPlaced: after }))).toEqual(expected)
  })

  test('L5 a payload without a JSON Schema on either side is said to go unseen', () => {
    const schema = unchecked<{ readonly a: string }>()
    expect(
      compareCatalogues(described({ OrderPlaced: { schema } }), described({ OrderPlaced: { schema } })),
    ).toMatchObject([{ event: 'OrderPlaced', kind: 'not-comparable', path: 'payload', breaking: false }])
  })

  test('L5 a removed event is refused, an added one is fine', () => {
    const before = described({ OrderPlaced: {}, OrderSent: {} })
    const after = described({ OrderPlaced: {}, OrderShipped: {} })
    expect(changes(before, after)).toEqual(['event-removed name !', 'event-added name'])
  })

  test('an event that only code calls otherwise is still the same event', () => {
    const before = described({ OrderSent: {} })
    const after = described({ OrderShipped: { storedAs: 'OrderSent' } })
    expect(changes(before, after)).toEqual(['event-renamed name'])
  })
})
