import type { Pool } from 'pg'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineEvents } from '../../src/event/define-events.ts'
import { InvalidEventError } from '../../src/event/errors.ts'
import type { NewEvent } from '../../src/event/event.ts'
import type { BatchInput, PublishInput } from '../../src/publish/event-bus.ts'
import { createPublisher, type PublisherOptions } from '../../src/publish/publisher.ts'
import type { Transaction } from '../../src/publish/transaction.ts'
import { DuplicateEventError, InvalidOptionsError, NotInTransactionError } from '../../src/runtime/errors.ts'
import { isUuidV7 } from '../../src/runtime/ids.ts'
import type { PublishStore } from '../../src/store/publish-store.ts'

const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const UUID = '0198C0DE-0000-7000-8000-00000000000A'

const events = defineEvents({
  OrderPlaced: { stream: 'shop.order.event', aggregate: 'order', schema: z.object({ total: z.number() }) },
  LedgerPosted: {
    stream: 'ledger-events',
    aggregate: 'TRANSACTION',
    storedAs: 'LEDGER_POSTED',
    version: 2,
    schema: z.object({ accountId: z.string() }),
    orderingKey: ({ accountId }) => accountId,
    sequence: true,
  },
})
type Events = typeof events

/** A store that keeps what it is given, in the order of calls. */
class FakeStore implements PublishStore<Transaction> {
  readonly calls: string[] = []
  readonly written: NewEvent[] = []
  inTransaction = true

  async assertInTransaction(): Promise<void> {
    this.calls.push('assertInTransaction')
    if (!this.inTransaction) throw new NotInTransactionError()
  }

  async insertEvents(
    _tx: Transaction,
    given: readonly NewEvent[],
    { onDuplicate }: { readonly onDuplicate: 'error' | 'ignore' },
  ): Promise<{ readonly inserted: number }> {
    this.calls.push(`insertEvents ${given.length} ${onDuplicate}`)
    const known = new Set(this.written.map((event) => event.eventId))
    const duplicates = given.filter((event) => known.has(event.eventId))
    if (onDuplicate === 'error' && duplicates.length > 0) {
      throw new DuplicateEventError(duplicates.map((event) => event.eventId))
    }
    const fresh = given.filter((event) => !known.has(event.eventId))
    this.written.push(...fresh)
    return { inserted: fresh.length }
  }
}

const tx: Transaction = { query: async () => ({ rows: [], rowCount: 0 }) }

function setup(options: Partial<PublisherOptions<Events, Transaction>> = {}) {
  const store = new FakeStore()
  return { store, bus: createPublisher({ catalogue: events, store, ...options }) }
}

async function problemsOf(publishing: Promise<unknown>): Promise<readonly string[]> {
  const error: unknown = await publishing.catch((thrown: unknown) => thrown)
  if (!(error instanceof InvalidEventError)) throw new Error('expected an InvalidEventError')
  return error.problems.map(({ index, path }) => (index === undefined ? path : `[${index}] ${path}`))
}

describe('publishing one event', () => {
  test('writes a complete event and returns its id', async () => {
    const { store, bus } = setup()
    const eventId = await bus.publish(tx, 'LedgerPosted', {
      aggregateId: 'tx-1',
      payload: { accountId: 'acc-1' },
    })
    expect(isUuidV7(eventId)).toBe(true)
    expect(store.calls).toEqual(['assertInTransaction', 'insertEvents 1 error'])
    expect(store.written).toEqual([
      {
        eventId,
        stream: 'ledger-events',
        type: 'LEDGER_POSTED',
        schemaVersion: 2,
        aggregateType: 'TRANSACTION',
        aggregateId: 'tx-1',
        orderingKey: 'acc-1',
        sequenced: true,
        payloadJson: '{"accountId":"acc-1"}',
        headers: {},
        occurredAt: null,
      },
    ])
  })

  test('takes ids, time, key and headers of the caller', async () => {
    const { store, bus } = setup()
    const occurredAt = new Date('2026-02-17T00:00:00Z')
    await bus.publish(tx, 'LedgerPosted', {
      aggregateId: 9_007_199_254_740_993n,
      payload: { accountId: 'acc-1' },
      eventId: UUID,
      occurredAt,
      orderingKey: 7,
      headers: { ownerId: 'OWNER' },
      traceparent: TRACEPARENT,
      tracestate: 'a=1',
      correlationId: 'c-1',
      causationId: 'e-0',
    })
    expect(store.written).toEqual([
      expect.objectContaining({
        eventId: UUID.toLowerCase(),
        aggregateId: '9007199254740993',
        orderingKey: '7',
        occurredAt,
        headers: {
          ownerId: 'OWNER',
          traceparent: TRACEPARENT,
          tracestate: 'a=1',
          correlationId: 'c-1',
          causationId: 'e-0',
        },
      }),
    ])
  })

  test('I3 an aggregate id made of two keys is taken as it is', async () => {
    const { store, bus } = setup()
    await bus.publish(tx, 'OrderPlaced', { aggregateId: 'tenant-1:entity-9', payload: { total: 1 } })
    expect(store.written[0]?.aggregateId).toBe('tenant-1:entity-9')
  })

  test('details that are undefined count as not given', async () => {
    const { store, bus } = setup()
    const absent = {
      eventId: undefined,
      occurredAt: undefined,
      orderingKey: undefined,
      headers: undefined,
      correlationId: undefined,
    }
    await bus.publish(tx, 'OrderPlaced', { aggregateId: '1', payload: { total: 1 }, ...absent })
    expect(store.written[0]).toMatchObject({ orderingKey: null, occurredAt: null, headers: {} })
  })

  test('headers of the surroundings are added, and those of the event win', async () => {
    const ambientHeaders = () => ({ traceparent: TRACEPARENT, tenant: 'ambient', region: 'kr' })
    const { store, bus } = setup({ ambientHeaders })
    await bus.publish(tx, 'OrderPlaced', {
      aggregateId: '1',
      payload: { total: 1 },
      headers: { tenant: 'own' },
    })
    expect(store.written[0]?.headers).toEqual({ traceparent: TRACEPARENT, tenant: 'own', region: 'kr' })
  })

  test('a malformed trace is left out, and never fails the transaction', async () => {
    const { store, bus } = setup()
    const input = { aggregateId: '1', payload: { total: 1 }, traceparent: 'x\r\ny', tracestate: 'a=1' }
    await bus.publish(tx, 'OrderPlaced', input)
    await bus.publish(tx, 'OrderPlaced', { ...input, traceparent: TRACEPARENT, tracestate: 'x'.repeat(513) })
    expect(store.written.map(({ headers }) => headers)).toEqual([{}, { traceparent: TRACEPARENT }])
  })

  test('E5 an id that is in the outbox is refused, or ignored where asked for', async () => {
    const { store, bus } = setup()
    const input = { aggregateId: '1', payload: { total: 1 }, eventId: UUID }
    await bus.publish(tx, 'OrderPlaced', input)
    await expect(bus.publish(tx, 'OrderPlaced', input)).rejects.toThrow(DuplicateEventError)
    expect(await bus.publish(tx, 'OrderPlaced', { ...input, onDuplicate: 'ignore' })).toBe(UUID.toLowerCase())
    expect(store.written).toHaveLength(1)
  })

  test('whoever wants to know is told after the write', async () => {
    const told: unknown[] = []
    const { store, bus } = setup({
      onPublished: (written, on) => told.push(written.length, on, store.calls.length),
    })
    await bus.publish(tx, 'OrderPlaced', { aggregateId: '1', payload: { total: 1 } })
    expect(told).toEqual([1, tx, 2])
  })
})

describe('what is refused before anything is written', () => {
  const good: PublishInput<{ total: number }> = { aggregateId: '1', payload: { total: 1 } }
  const refused: readonly (readonly [string, Partial<Record<keyof PublishInput, unknown>>, string])[] = [
    ['an empty aggregate id', { aggregateId: '' }, 'aggregateId'],
    ['an aggregate id of 256 characters', { aggregateId: 'x'.repeat(256) }, 'aggregateId'],
    ['an aggregate id with a NUL', { aggregateId: 'a\0' }, 'aggregateId'],
    ['an aggregate id that JavaScript rounded', { aggregateId: 2 ** 53 }, 'aggregateId'],
    ['an aggregate id with a fraction', { aggregateId: 1.5 }, 'aggregateId'],
    ['no aggregate id', { aggregateId: undefined }, 'aggregateId'],
    ['an empty ordering key', { orderingKey: '' }, 'orderingKey'],
    ['an ordering key with half a character', { orderingKey: '\ud800' }, 'orderingKey'],
    ['an id that is no UUID', { eventId: 'order-1' }, 'eventId'],
    ['an invalid time', { occurredAt: new Date(Number.NaN) }, 'occurredAt'],
    ['a time no database holds', { occurredAt: new Date('+012026-01-01T00:00:00Z') }, 'occurredAt'],
    ['a time that is text', { occurredAt: '2026-01-01' }, 'occurredAt'],
    ['a header with a line break', { headers: { a: 'x\ny' } }, 'headers.a'],
    ['a header named like a field of the envelope', { headers: { payload: 'x' } }, 'headers.payload'],
    ['a correlation id that is no text', { correlationId: 5 }, 'headers.correlationId'],
    ['a payload that does not fit', { payload: { total: 'much' } }, 'payload.total'],
  ]
  test.each(refused)('%s', async (_, details, path) => {
    const { store, bus } = setup()
    const input = { ...good, ...details } as PublishInput<{ total: number }>
    expect(await problemsOf(bus.publish(tx, 'OrderPlaced', input))).toEqual([path])
    expect(store.calls).toEqual([])
  })

  test('all problems of an event are told together', async () => {
    const { bus } = setup()
    const input = { aggregateId: '', eventId: 'x', headers: { 'a b': 'c' }, payload: { total: '1' } }
    expect(await problemsOf(bus.publish(tx, 'OrderPlaced', input as never))).toEqual([
      'aggregateId',
      'eventId',
      'headers["a b"]',
      'payload.total',
    ])
  })

  test('a payload over the limit of the publisher', async () => {
    const { bus } = setup({ maxPayloadBytes: 10 })
    const publishing = bus.publish(tx, 'OrderPlaced', { aggregateId: '1', payload: { total: 123_456 } })
    await expect(publishing).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' })
    await expect(publishing).rejects.toThrow('is 16 bytes; the limit is 10 bytes (option maxPayloadBytes)')
  })

  test('an event that is not in the catalogue', async () => {
    const { store, bus } = setup()
    const publishing = bus.publish(tx, 'OrderPlace' as never, good as never)
    await expect(publishing).rejects.toMatchObject({ code: 'UNKNOWN_EVENT_TYPE' })
    expect(store.calls).toEqual([])
  })

  test('an unknown way with duplicates', async () => {
    const { bus } = setup()
    const input = { ...good, onDuplicate: 'replace' as never }
    await expect(bus.publish(tx, 'OrderPlaced', input)).rejects.toThrow(InvalidOptionsError)
  })

  test('options of the publisher that cannot work', () => {
    expect(() => setup({ maxPayloadBytes: 0 })).toThrow(InvalidOptionsError)
  })
})

describe('publishing several events', () => {
  const orders = (...totals: readonly unknown[]): BatchInput<Events>[] =>
    totals.map((total) => ({ type: 'OrderPlaced', aggregateId: '1', payload: { total: total as number } }))

  test('writes them in one statement, in the given order, with ascending ids', async () => {
    const { store, bus } = setup()
    const ids = await bus.publishAll(tx, [
      ...orders(1, 2),
      { type: 'LedgerPosted', aggregateId: 't', payload: { accountId: 'a' } },
    ])
    expect(store.calls).toEqual(['assertInTransaction', 'insertEvents 3 error'])
    expect(store.written.map(({ eventId }) => eventId)).toEqual(ids)
    expect([...ids].toSorted()).toEqual(ids)
    expect(store.written.map(({ type }) => type)).toEqual(['OrderPlaced', 'OrderPlaced', 'LEDGER_POSTED'])
  })

  test('nothing to publish asks nothing of the database', async () => {
    const { store, bus } = setup()
    expect(await bus.publishAll(tx, [])).toEqual([])
    expect(store.calls).toEqual([])
  })

  test('the problems of all events are told together, with the index of each', async () => {
    const { store, bus } = setup()
    const inputs = [
      ...orders('x', 2),
      { type: 'Unknown', aggregateId: '', payload: {} } as never,
      ...orders(4),
    ]
    expect(await problemsOf(bus.publishAll(tx, inputs))).toEqual([
      '[0] payload.total',
      '[2] aggregateId',
      '[2] type',
    ])
    expect(store.calls).toEqual([])
    await expect(bus.publishAll(tx, inputs)).rejects.toThrow('[2] type: "Unknown" is not in the catalogue')
  })

  test('E5 an id that is used twice in a batch is refused', async () => {
    const { store, bus } = setup()
    const twice = [{ eventId: UUID }, {}, { eventId: UUID.toLowerCase() }].map(
      (id): BatchInput<Events> => ({ type: 'OrderPlaced', aggregateId: '1', payload: { total: 1 }, ...id }),
    )
    expect(await problemsOf(bus.publishAll(tx, twice))).toEqual(['[2] eventId'])
    await bus.publishAll(tx, twice, { onDuplicate: 'ignore' })
    expect(store.calls.at(-1)).toBe('insertEvents 3 ignore')
  })
})

describe('E1 only inside a transaction', () => {
  const input = { aggregateId: '1', payload: { total: 1 } }

  test('outside one nothing is written', async () => {
    const { store, bus } = setup()
    store.inTransaction = false
    await expect(bus.publish(tx, 'OrderPlaced', input)).rejects.toThrow(NotInTransactionError)
    expect(store.written).toEqual([])
  })

  const handles: readonly (readonly [string, unknown])[] = [
    [
      'a pg pool',
      { connect: () => undefined, query: () => undefined, totalCount: 0, idleCount: 0 } as unknown as Pool,
    ],
    ['a mysql2 pool', { getConnection: () => undefined, query: () => undefined }],
    ['nothing', undefined],
    ['null', null],
    ['a text', 'postgres://localhost'],
  ]
  test.each(handles)('%s is refused in place of a transaction', async (_, handle) => {
    const { store, bus } = setup()
    await expect(bus.publish(handle as Transaction, 'OrderPlaced', input)).rejects.toThrow(
      NotInTransactionError,
    )
    const batch = [{ type: 'OrderPlaced' as const, ...input }]
    await expect(bus.publishAll(handle as Transaction, batch)).rejects.toThrow('not the pool')
    expect(store.calls).toEqual([])
  })
})

test('mistakes are compile errors', () => {
  const { bus } = setup()
  const mistakes = async (): Promise<void> => {
    // @ts-expect-error an event nobody defined
    await bus.publish(tx, 'OrderPlace', { aggregateId: '1', payload: { total: 1 } })
    // @ts-expect-error a payload of another type
    await bus.publish(tx, 'OrderPlaced', { aggregateId: '1', payload: { total: '1' } })
    // @ts-expect-error the payload of another event
    await bus.publish(tx, 'LedgerPosted', { aggregateId: '1', payload: { total: 1 } })
    // @ts-expect-error no aggregate
    await bus.publish(tx, 'OrderPlaced', { payload: { total: 1 } })
    // @ts-expect-error no transaction
    await bus.publish('OrderPlaced', { aggregateId: '1', payload: { total: 1 } })
    // @ts-expect-error the payload of another event, in a batch
    await bus.publishAll(tx, [{ type: 'LedgerPosted', aggregateId: '1', payload: { total: 1 } }])
  }
  expect(mistakes).toBeTypeOf('function')
})
