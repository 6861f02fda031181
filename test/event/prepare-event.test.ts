import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Catalogue } from '../../src/event/catalogue.ts'
import { defineEvents } from '../../src/event/define-events.ts'
import type { EventDefinition } from '../../src/event/definition.ts'
import type { PrepareResult } from '../../src/event/prepare-event.ts'
import { type StandardSchemaV1, unchecked } from '../../src/event/standard-schema.ts'

const base = { stream: 'shop.order.event', aggregate: 'order' }
const limits = { maxPayloadBytes: 1_000 }

async function prepareWith(definition: Partial<EventDefinition>, payload: unknown): Promise<PrepareResult> {
  const catalogue: Catalogue = defineEvents({ OrderPlaced: { ...base, ...definition } })
  return await catalogue.prepare('OrderPlaced', { payload, aggregateId: '42', orderingKey: null }, limits)
}

async function storedJson(schema: StandardSchemaV1, payload: unknown): Promise<string | null> {
  const prepared = await prepareWith({ schema }, payload)
  return prepared.ok ? prepared.event.payloadJson : null
}

const libraries: readonly (readonly [string, StandardSchemaV1])[] = [
  [
    'zod',
    z.object({ id: z.string(), qty: z.number(), lines: z.array(z.object({ sku: z.string() })).optional() }),
  ],
  [
    'valibot',
    v.object({ id: v.string(), qty: v.number(), lines: v.optional(v.array(v.object({ sku: v.string() }))) }),
  ],
  ['arktype', type({ id: 'string', qty: 'number', 'lines?': type({ sku: 'string' }).array() })],
]

describe.each(libraries)('with %s', (_, schema) => {
  test('a valid payload is prepared', async () => {
    const prepared = await prepareWith(
      { schema, version: 2, sequence: true, storedAs: 'ORDER_PLACED' },
      { id: 'a', qty: 1 },
    )
    expect(prepared).toEqual({
      ok: true,
      event: {
        stream: 'shop.order.event',
        type: 'ORDER_PLACED',
        schemaVersion: 2,
        aggregateType: 'order',
        orderingKey: null,
        sequenced: true,
        payloadJson: '{"id":"a","qty":1}',
      },
    })
  })

  test('an invalid payload is refused with the path of each problem', async () => {
    const prepared = await prepareWith({ schema }, { id: 'a', qty: 'many', lines: [{ sku: 1 }] })
    const problems = prepared.ok ? [] : prepared.problems
    expect(problems.map(({ code, path }) => ({ code, path }))).toEqual(
      expect.arrayContaining([
        { code: 'PAYLOAD_INVALID', path: 'payload.qty' },
        { code: 'PAYLOAD_INVALID', path: 'payload.lines[0].sku' },
      ]),
    )
  })

  test('U10 the complaint about a sensitive field does not quote it', async () => {
    const definition = { schema, sensitive: ['qty', 'lines.sku'] }
    const prepared = await prepareWith(definition, {
      id: 'a',
      qty: 'top-secret',
      lines: [{ sku: 987654321 }],
    })
    expect(JSON.stringify(prepared)).not.toMatch(/top-secret|987654321/)
    expect(JSON.stringify(prepared)).toContain('withheld')
  })
})

describe('without a run-time schema', () => {
  test.each([
    ['none', {}],
    ['unchecked', { schema: unchecked<{ id: string }>() }],
  ])('%s: any JSON is taken, and checked for what can be stored', async (_, definition) => {
    expect(await prepareWith(definition, [1, 'a'])).toMatchObject({
      ok: true,
      event: { payloadJson: '[1,"a"]' },
    })
    expect(await prepareWith(definition, { a: 1n })).toMatchObject({
      ok: false,
      problems: [{ code: 'PAYLOAD_NOT_STORABLE', path: 'payload.a' }],
    })
  })
})

describe('what is stored', () => {
  test('U10 fields that the schema does not know are dropped, so that a whole row can be passed', async () => {
    const row = { id: 'a', passwordHash: 'x', blob: Buffer.from('x'), seq: 1n }
    expect(await storedJson(z.object({ id: z.string() }), row)).toBe('{"id":"a"}')
  })

  test('defaults are filled in, so that a later default does not rewrite history', async () => {
    expect(await storedJson(z.object({ currency: z.string().default('KRW') }), {})).toBe('{"currency":"KRW"}')
  })

  test('a transform that the schema would not read back is stored as given', async () => {
    const amount = z.object({ amount: z.string().transform((text) => BigInt(text)) })
    expect(await storedJson(amount, { amount: '12345678901234567890' })).toBe(
      '{"amount":"12345678901234567890"}',
    )
    const shout = z.object({ name: z.string().transform((text) => `${text}!`) })
    expect(await storedJson(shout, { name: 'a' })).toBe('{"name":"a"}')
  })

  test('a transform that changes nothing the second time is stored as transformed', async () => {
    const trimmed = z.object({ name: z.string().trim(), at: z.coerce.date() })
    expect(await storedJson(trimmed, { name: ' a ', at: '2026-01-01' })).toBe(
      '{"name":"a","at":"2026-01-01T00:00:00.000Z"}',
    )
  })

  test('a schema that refuses its own stored form is found out when publishing, not when reading', async () => {
    const prepared = await prepareWith({ schema: z.object({ at: z.date() }) }, { at: new Date(0) })
    expect(prepared).toMatchObject({ ok: false, problems: [{ code: 'PAYLOAD_INVALID', path: 'payload.at' }] })
    expect(JSON.stringify(prepared)).toContain('when read back from JSON')
  })

  test('a payload over the limit is refused', async () => {
    const schema = z.object({ text: z.string() })
    expect(await prepareWith({ schema }, { text: 'x'.repeat(1_000) })).toMatchObject({
      ok: false,
      problems: [{ code: 'PAYLOAD_TOO_LARGE', path: 'payload' }],
    })
  })

  test('a payload that passes its schema but cannot be stored is refused', async () => {
    expect(await prepareWith({ schema: z.object({ a: z.string() }) }, { a: '\0' })).toMatchObject({
      ok: false,
      problems: [{ code: 'PAYLOAD_NOT_STORABLE', path: 'payload.a' }],
    })
  })
})

describe('schemas with a life of their own', () => {
  test('an asynchronous schema is awaited', async () => {
    const schema = z.object({ id: z.string().refine(async (id) => id !== 'taken', 'is taken') })
    expect(await storedJson(schema, { id: 'free' })).toBe('{"id":"free"}')
    expect(await prepareWith({ schema }, { id: 'taken' })).toMatchObject({
      ok: false,
      problems: [{ path: 'payload.id', message: 'is taken' }],
    })
  })

  const failing = (validate: () => never | Promise<never>): StandardSchemaV1 => ({
    '~standard': { version: 1, vendor: 'test', validate },
  })
  const bug = new Error('bug 4111')
  test.each([
    [
      'at once',
      failing(() => {
        throw bug
      }),
    ],
    ['later', failing(() => Promise.reject(bug))],
  ])('a schema that fails %s refuses the payload', async (_, schema) => {
    const prepared = await prepareWith({ schema }, 'x')
    expect(JSON.stringify(prepared)).toContain('the schema itself failed: bug 4111')
    const hidden = await prepareWith({ schema, sensitive: ['card'] }, 'x')
    expect(JSON.stringify(hidden)).not.toContain('4111')
  })
})

describe('L9 the ordering key', () => {
  const schema = z.object({ accountId: z.string() })
  const prepareKeyed = (orderingKey: (payload: { accountId: string }) => string, payload: unknown) =>
    defineEvents({
      LedgerPosted: { ...base, schema, orderingKey, sequence: true },
    }).prepare('LedgerPosted', { payload, aggregateId: 'tx-1', orderingKey: null }, limits)

  test('is made of the payload', async () => {
    expect(await prepareKeyed(({ accountId }) => accountId, { accountId: 'acc-1' })).toMatchObject({
      ok: true,
      event: { orderingKey: 'acc-1', sequenced: true },
    })
  })

  test('of the publisher wins over that of the definition', async () => {
    const events = defineEvents({ LedgerPosted: { ...base, orderingKey: () => 'definition' } })
    const input = { payload: {}, aggregateId: '1', orderingKey: 'publisher' }
    expect(await events.prepare('LedgerPosted', input, limits)).toMatchObject({
      event: { orderingKey: 'publisher' },
    })
  })

  const broken: readonly (readonly [string, () => string])[] = [
    ['empty', () => ''],
    ['too long', () => 'x'.repeat(256)],
    ['no text', () => 5 as unknown as string],
    ['unstorable', () => 'a\0'],
    [
      'thrown',
      () => {
        throw new Error('no')
      },
    ],
  ]
  test.each(broken)('that is %s is refused', async (_, orderingKey) => {
    expect(await prepareKeyed(orderingKey, { accountId: 'a' })).toMatchObject({
      ok: false,
      problems: [{ code: 'INVALID_EVENT', path: 'orderingKey' }],
    })
  })
})

test('U10 what an ordering key throws is withheld where fields are sensitive', async () => {
  const orderingKey = (): never => {
    throw new Error('card 4111')
  }
  const prepared = await prepareWith({ orderingKey, sensitive: ['card'] }, { card: '4111' })
  expect(prepared).toMatchObject({ ok: false, problems: [{ path: 'orderingKey' }] })
  expect(JSON.stringify(prepared)).not.toContain('4111')
})

test('an unknown event is a problem, with a hint where the stored type was used', async () => {
  const events: Catalogue = defineEvents({ LedgerPosted: { ...base, storedAs: 'LEDGER_POSTED' } })
  const input = { payload: {}, aggregateId: '1', orderingKey: null }
  expect(await events.prepare('LEDGER_POSTED', input, limits)).toEqual({
    ok: false,
    problems: [
      {
        code: 'UNKNOWN_EVENT_TYPE',
        path: 'type',
        message: expect.stringContaining('it is called "LedgerPosted"'),
      },
    ],
  })
})
