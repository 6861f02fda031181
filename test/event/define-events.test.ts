import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineEvents } from '../../src/event/define-events.ts'
import type { CatalogueOptions, EventDefinition } from '../../src/event/definition.ts'
import { unchecked } from '../../src/event/standard-schema.ts'
import { InvalidOptionsError } from '../../src/runtime/errors.ts'

const stream = 'shop.order.event'
const aggregate = 'order'

function problemsOf(definitions: Record<string, unknown>, options?: CatalogueOptions): readonly string[] {
  try {
    defineEvents(definitions as Record<string, EventDefinition>, options)
    return []
  } catch (error) {
    if (error instanceof InvalidOptionsError) return error.problems
    throw error
  }
}

describe('a catalogue', () => {
  test('fills in the defaults', () => {
    const { events } = defineEvents({ OrderPlaced: { stream, aggregate } })
    expect(events).toEqual([
      {
        name: 'OrderPlaced',
        storedAs: 'OrderPlaced',
        kind: 'event',
        stream,
        aggregate,
        version: 1,
        oldestVersion: 1,
        schema: null,
        jsonSchema: null,
        upcast: new Map(),
        sensitive: [],
        orderingKey: null,
        sequenced: false,
      },
    ])
  })

  test('L2 finds an event by its name in code and by its type in the table', () => {
    const ledger = defineEvents({
      LedgerPosted: { stream: 'ledger-events', aggregate: 'TRANSACTION', storedAs: 'LEDGER_POSTED' },
      LedgerReversed: { stream: 'ledger-events', aggregate: 'TRANSACTION', storedAs: 'LEDGER_REVERSED' },
    })
    expect(ledger.find('LedgerPosted')?.storedAs).toBe('LEDGER_POSTED')
    expect(ledger.findStored('LEDGER_POSTED')?.name).toBe('LedgerPosted')
    expect(ledger.find('LEDGER_POSTED')).toBeUndefined()
    expect(ledger.findStored('LedgerPosted')).toBeUndefined()
  })

  test('L2 the names may be UPPER_SNAKE_CASE themselves', () => {
    expect(problemsOf({ LEDGER_POSTED: { stream, aggregate } }, { names: 'upper-snake' })).toEqual([])
    expect(problemsOf({ LEDGER_POSTED: { stream, aggregate } })).toHaveLength(1)
  })

  test('definitions of several modules are put together by spreading', () => {
    const guild = {
      BotKicked: { stream: 'umbra.guild', aggregate: 'guild', schema: unchecked<{ guild_id: string }>() },
    }
    const billing = { PaymentFailed: { stream: 'umbra.billing', aggregate: 'subscription' } }
    expect(defineEvents({ ...guild, ...billing }).events.map(({ name }) => name)).toEqual([
      'BotKicked',
      'PaymentFailed',
    ])
  })

  test('E4 the five streams of everbit are taken as they are, commands among them', () => {
    const streams = ['trade.command', 'trade.event', 'backtest.command', 'backtest.event', 'system.event']
    const everbit = defineEvents({
      CreateOrderAttempt: { stream: `everbit.${streams[0]}`, aggregate: 'order_attempt', kind: 'command' },
      OrderAccepted: { stream: `everbit.${streams[1]}`, aggregate: 'order_attempt' },
      RunBacktest: { stream: `everbit.${streams[2]}`, aggregate: 'backtest', kind: 'command' },
      BacktestCompleted: { stream: `everbit.${streams[3]}`, aggregate: 'backtest' },
      KillSwitchTriggered: { stream: `everbit.${streams[4]}`, aggregate: 'system' },
    })
    expect(everbit.events.map((event) => event.stream)).toEqual(streams.map((name) => `everbit.${name}`))
  })
})

describe('what a definition is refused for', () => {
  const base = { stream, aggregate }
  const refused: readonly (readonly [string, unknown, string])[] = [
    ['a stream that is no topic', { ...base, stream: 'shop order' }, 'stream must be 1 to 249'],
    ['E4 a stream too long for a topic', { ...base, stream: 'x'.repeat(250) }, 'stream must be 1 to 249'],
    ['the stream ".."', { ...base, stream: '..' }, 'stream must be 1 to 249'],
    ['no stream', { aggregate }, 'stream must be 1 to 249'],
    ['an aggregate type with a colon', { ...base, aggregate: 'a:b' }, 'aggregate must be'],
    ['a version of 0', { ...base, version: 0 }, 'version must be a whole number from 1 on'],
    ['a version of 1.5', { ...base, version: 1.5 }, 'version must be a whole number from 1 on'],
    [
      'an oldest version above the version',
      { ...base, oldestVersion: 2 },
      'oldestVersion must not be above version',
    ],
    [
      'a missing upcaster',
      { ...base, version: 3, upcast: { 1: () => ({}) } },
      'upcast lacks the step from version 2',
    ],
    [
      'an upcaster from the current version',
      { ...base, version: 2, upcast: { 1: () => 1, 2: () => 1 } },
      'upcast[2] leads nowhere: steps start at version 1',
    ],
    ['an upcaster for the only version', { ...base, upcast: { 1: () => 1 } }, 'upcast[1] leads nowhere'],
    [
      'an upcaster below the oldest version',
      { ...base, version: 3, oldestVersion: 2, upcast: { 1: () => 1, 2: () => 1 } },
      'upcast[1] leads nowhere',
    ],
    [
      'an upcaster that is no function',
      { ...base, version: 2, upcast: { 1: 'x' } },
      'upcast[1] must be a function',
    ],
    [
      'an upcaster under a word',
      { ...base, version: 2, upcast: { 1: () => 1, one: () => 1 } },
      'upcast[NaN] leads nowhere',
    ],
    ['a schema that is none', { ...base, schema: { parse: () => 1 } }, 'schema must be a Standard Schema'],
    ['a misspelt property', { ...base, sensitve: ['email'] }, 'has an unknown property "sensitve"'],
    ['an unknown kind', { ...base, kind: 'query' }, "kind must be 'event' or 'command'"],
    ['an ordering key that is no function', { ...base, orderingKey: 'id' }, 'orderingKey must be a function'],
    ['a sequence that is no boolean', { ...base, sequence: 'yes' }, 'sequence must be true or false'],
    ['sensitive as a text', { ...base, sensitive: 'email' }, 'sensitive must be a list of paths'],
    [
      'an empty sensitive path',
      { ...base, sensitive: ['a..b'] },
      'sensitive path "a..b" must be keys joined by dots',
    ],
    [
      'an unknown sink',
      { ...base, sensitive: [{ path: 'a', from: ['slack'] }] },
      'sensitive path "a" must be hidden from some of log',
    ],
    ['a stored type with a space', { ...base, storedAs: 'ORDER PLACED' }, 'storedAs must be 1 to 255'],
    ['no object at all', null, 'must be an object'],
  ]
  test.each(refused)('%s', (_, definition, problem) => {
    expect(problemsOf({ OrderPlaced: definition })).toEqual([
      expect.stringContaining(`OrderPlaced: ${problem}`),
    ])
  })

  test('all problems of all definitions are told together', () => {
    const problems = problemsOf({
      OrderPlace: { stream: 'a b', aggregate: '', version: 0 },
      PaymentFailed: { stream, aggregate, upcast: { 1: 1 } },
    })
    expect(problems.map((problem) => problem.split(' ')[0])).toEqual([
      'OrderPlace:',
      'OrderPlace:',
      'OrderPlace:',
      'OrderPlace:',
      'PaymentFailed:',
      'PaymentFailed:',
    ])
  })

  test('a name or stored type that means two events', () => {
    expect(
      problemsOf({
        OrderPlaced: { stream, aggregate, storedAs: 'PLACED' },
        OfferPlaced: { stream, aggregate, storedAs: 'PLACED' },
      }),
    ).toEqual(['OfferPlaced: is called or stored as "PLACED", and so is OrderPlaced'])
    expect(
      problemsOf({
        OrderPlaced: { stream, aggregate, storedAs: 'OfferPlaced' },
        OfferPlaced: { stream, aggregate, storedAs: 'OfferMade' },
      }),
    ).toEqual(['OfferPlaced: is called or stored as "OfferPlaced", and so is OrderPlaced'])
  })

  test('a version of two billion is refused as quickly as any', () => {
    expect(problemsOf({ OrderPlaced: { ...base, version: 2 ** 31 - 1, upcast: {} } })[0]).toContain(
      'from version 1, 2, 3',
    )
  })

  test('U10 a sensitive path that the schema does not know', () => {
    const schema = z.object({
      card: z.object({ number: z.string() }),
      items: z.array(z.object({ note: z.string() })),
      extra: z.record(z.string(), z.object({ secret: z.string() })),
      open: z.unknown(),
      either: z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]),
      maybe: z.object({ pin: z.string() }).nullable().optional(),
    })
    const known = [
      'card',
      'card.number',
      'items.note',
      'items.0.note',
      'items.*.note',
      'extra.x.secret',
      'extra.*.secret',
      'open.x.y',
      'either.b',
      'maybe.pin',
    ]
    expect(problemsOf({ OrderPlaced: { ...base, schema, sensitive: known } })).toEqual([])
    const unknown = ['crad', 'card.nubmer', 'items.nota', 'extra.x.other', 'either.c', 'card.number.x']
    expect(problemsOf({ OrderPlaced: { ...base, schema, sensitive: unknown } })).toHaveLength(unknown.length)
  })

  test('U10 paths of older versions may be sensitive too', () => {
    const schema = z.object({ card: z.object({ number: z.string() }) })
    const definition = {
      ...base,
      schema,
      version: 2,
      upcast: { 1: () => ({}) },
      sensitive: ['cardNumber', 'card.number'],
    }
    expect(problemsOf({ OrderPlaced: definition })).toEqual([])
  })

  test('a sensitive path is not held against a schema that cannot tell its fields', () => {
    const schema = v.object({ email: v.string() })
    expect(problemsOf({ OrderPlaced: { ...base, schema, sensitive: ['emial'] } })).toEqual([])
    const jsonSchema = { type: 'object', properties: { email: { type: 'string' } } }
    expect(problemsOf({ OrderPlaced: { ...base, schema, jsonSchema, sensitive: ['emial'] } })).toHaveLength(1)
  })
})

describe('refused events', () => {
  const refuse = [
    { stream: '*.ticker', reason: 'market data does not belong into the outbox' },
    { stream: '*.orderbook', reason: 'market data does not belong into the outbox' },
    { type: 'Ticker*', reason: 'tickers are read from the socket' },
  ]

  test('E1 a ticker event is refused by the catalogue', () => {
    expect(problemsOf({ PriceChanged: { stream: 'upbit.ticker', aggregate: 'market' } }, { refuse })).toEqual(
      ['PriceChanged: is refused: market data does not belong into the outbox'],
    )
    expect(problemsOf({ TickerUpdated: { stream: 'upbit.price', aggregate: 'market' } }, { refuse })).toEqual(
      ['TickerUpdated: is refused: tickers are read from the socket'],
    )
    expect(problemsOf({ OrderPlaced: { stream, aggregate } }, { refuse })).toEqual([])
  })

  test('E1 a refused type is refused by its stored name too', () => {
    const definition = { stream, aggregate, storedAs: 'TickerRow' }
    expect(problemsOf({ PriceChanged: definition }, { refuse })).toHaveLength(1)
  })

  test('E1 publishing a refused type says why, not merely that it is unknown', async () => {
    const catalogue = defineEvents({ OrderPlaced: { stream, aggregate } }, { refuse })
    const input = { payload: {}, aggregateId: '1', orderingKey: null }
    expect(await catalogue.prepare('TickerUpdated', input, { maxPayloadBytes: 100 })).toEqual({
      ok: false,
      problems: [
        { code: 'EVENT_REFUSED', path: 'type', message: expect.stringContaining('read from the socket') },
      ],
    })
  })

  test('rules that cannot work are told with the rest', () => {
    const options = { names: 'camelCase', refuse: [{ stream: '' }] } as unknown as CatalogueOptions
    expect(problemsOf({ OrderPlaced: { stream: '', aggregate } }, options)).toEqual([
      expect.stringContaining('names must be'),
      expect.stringContaining('refuse must list'),
      expect.stringContaining('OrderPlaced: stream'),
    ])
  })
})
