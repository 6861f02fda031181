import { type } from 'arktype'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { EventDefinition } from '../../src/event/definition.ts'
import type { StandardSchemaV1 } from '../../src/event/standard-schema.ts'
import { changes, described } from './compare-support.ts'

function payloadChanges(before: StandardSchemaV1, after: StandardSchemaV1): readonly string[] {
  return changes(
    described({ OrderPlaced: { schema: before } }),
    described({ OrderPlaced: { schema: after } }),
  )
}

const Tree = z.object({
  name: z.string(),
  get kids() {
    return z.array(Tree)
  },
})
const WiderTree = z.object({
  name: z.number(),
  get kids() {
    return z.array(WiderTree)
  },
})
const card = z.object({ kind: z.literal('card'), number: z.string() })
const cash = z.object({ kind: z.literal('cash') })
const point = z.object({ kind: z.literal('point'), amount: z.number() })

describe('L5 changes of a payload', () => {
  const table: readonly (readonly [string, StandardSchemaV1, StandardSchemaV1, readonly string[]])[] = [
    ['nothing changed', z.object({ a: z.string() }), z.object({ a: z.string() }), []],
    [
      'L5 an added optional field is fine',
      z.object({ a: z.string() }),
      z.object({ a: z.string(), b: z.string().optional() }),
      ['field-added payload.b'],
    ],
    [
      'L5 an added field with a default is fine',
      z.object({}),
      z.object({ b: z.string().default('x') }),
      ['field-added payload.b'],
    ],
    [
      'L5 an added required field is refused',
      z.object({}),
      z.object({ b: z.string() }),
      ['field-required payload.b !'],
    ],
    [
      'L5 a removed field is refused',
      z.object({ a: z.string(), b: z.string() }),
      z.object({ a: z.string() }),
      ['field-removed payload.b !'],
    ],
    [
      'L5 a removed optional field is refused',
      z.object({ b: z.string().optional() }),
      z.object({}),
      ['field-removed payload.b !'],
    ],
    [
      'L5 a changed type is refused',
      z.object({ a: z.string() }),
      z.object({ a: z.number() }),
      ['type-changed payload.a !'],
    ],
    [
      'an integer that may have a fraction is a changed type',
      z.object({ a: z.int() }),
      z.object({ a: z.number() }),
      ['type-changed payload.a !'],
    ],
    [
      'L5 a newly required field is refused',
      z.object({ a: z.string().optional() }),
      z.object({ a: z.string() }),
      ['field-required payload.a !'],
    ],
    [
      'a field that may be absent now is refused',
      z.object({ a: z.string() }),
      z.object({ a: z.string().optional() }),
      ['field-optional payload.a !'],
    ],
    [
      'a field that may be null now is refused',
      z.object({ a: z.string() }),
      z.object({ a: z.string().nullable() }),
      ['variant-added payload.a !'],
    ],
    [
      'a field that may not be null now is refused',
      z.object({ a: z.string().nullable() }),
      z.object({ a: z.string() }),
      ['variant-removed payload.a !'],
    ],
    [
      'deep inside objects and lists',
      z.object({ o: z.object({ l: z.array(z.object({ a: z.string() })) }) }),
      z.object({ o: z.object({ l: z.array(z.object({ a: z.number() })) }) }),
      ['type-changed payload.o.l[*].a !'],
    ],
    [
      'inside a record',
      z.object({ r: z.record(z.string(), z.string()) }),
      z.object({ r: z.record(z.string(), z.number()) }),
      ['type-changed payload.r[*] !'],
    ],
    [
      'inside a tuple',
      z.object({ t: z.tuple([z.string(), z.string()]) }),
      z.object({ t: z.tuple([z.string(), z.number()]) }),
      ['type-changed payload.t[1] !'],
    ],
    ['inside a recursive schema', Tree, WiderTree, ['type-changed payload.name !']],
    [
      'a value less',
      z.object({ a: z.enum(['x', 'y']) }),
      z.object({ a: z.enum(['x']) }),
      ['value-removed payload.a !'],
    ],
    [
      'a value more, which older code refuses',
      z.object({ a: z.enum(['x']) }),
      z.object({ a: z.enum(['x', 'y']) }),
      ['value-added payload.a !'],
    ],
    [
      'any text instead of listed values',
      z.object({ a: z.enum(['x']) }),
      z.object({ a: z.string() }),
      ['constraint-loosened payload.a'],
    ],
    [
      'listed values instead of any text',
      z.object({ a: z.string() }),
      z.object({ a: z.enum(['x']) }),
      ['constraint-tightened payload.a !'],
    ],
    [
      'an alternative more',
      z.object({ p: z.discriminatedUnion('kind', [card, cash]) }),
      z.object({ p: z.discriminatedUnion('kind', [cash, card, point]) }),
      ['variant-added payload.p !'],
    ],
    [
      'an alternative less',
      z.object({ p: z.discriminatedUnion('kind', [card, cash]) }),
      z.object({ p: z.discriminatedUnion('kind', [card]) }),
      ['variant-removed payload.p !'],
    ],
    [
      'a change inside an alternative',
      z.object({ p: z.discriminatedUnion('kind', [card, cash]) }),
      z.object({ p: z.discriminatedUnion('kind', [cash, card.extend({ number: z.number() })]) }),
      ['type-changed payload.p.number !'],
    ],
    [
      'a shorter text',
      z.object({ a: z.string().max(10) }),
      z.object({ a: z.string().max(5) }),
      ['constraint-tightened payload.a !'],
    ],
    [
      'a longer text',
      z.object({ a: z.string().max(10) }),
      z.object({ a: z.string().max(50) }),
      ['constraint-loosened payload.a'],
    ],
    [
      'a new lower bound',
      z.object({ a: z.number() }),
      z.object({ a: z.number().min(1) }),
      ['constraint-tightened payload.a !'],
    ],
    [
      'a dropped bound',
      z.object({ a: z.number().min(1) }),
      z.object({ a: z.number() }),
      ['constraint-loosened payload.a'],
    ],
    [
      'a new format',
      z.object({ a: z.string() }),
      z.object({ a: z.uuid() }),
      ['constraint-tightened payload.a !', 'constraint-tightened payload.a !'],
    ],
    [
      'a schema that starts to refuse unknown fields',
      z.object({ a: z.string() }),
      z.strictObject({ a: z.string() }),
      ['constraint-tightened payload !'],
    ],
    [
      'an added field where older code refuses unknown ones',
      z.strictObject({ a: z.string() }),
      z.strictObject({ a: z.string(), b: z.string().optional() }),
      ['field-added payload.b !'],
    ],
    [
      'the same in another library',
      z.object({ a: z.string(), b: z.enum(['x', 'y']).optional(), c: z.string().nullable() }),
      type({ a: 'string', 'b?': "'x'|'y'", c: 'string|null' }),
      [],
    ],
    ['in arktype', type({ a: 'string' }), type({ a: 'number' }), ['type-changed payload.a !']],
  ]
  test.each(table)('%s', (_, before, after, expected) => {
    expect(payloadChanges(before, after)).toEqual(expected)
  })

  test('definitions are followed', () => {
    const schema = (amount: string): Partial<EventDefinition> => ({
      jsonSchema: {
        type: 'object',
        properties: { price: { $ref: '#/$defs/Money' } },
        $defs: { Money: { type: 'object', properties: { amount: { type: amount } } } },
      },
    })
    const before = described({ OrderPlaced: schema('string') })
    expect(changes(before, described({ OrderPlaced: schema('number') }))).toEqual([
      'type-changed payload.price.amount !',
    ])
  })
})
