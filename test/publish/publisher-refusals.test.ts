import { describe, expect, test } from 'vitest'
import type { PublishInput } from '../../src/publish/event-bus.ts'
import { InvalidOptionsError, NotInTransactionError } from '../../src/runtime/errors.ts'
import type { Transaction } from '../../src/store/transaction.ts'
import { problemsOf, setup, tx } from './support.ts'

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
    expect(await problemsOf(bus.publish(tx, 'OrderPlaced', input))).toEqual(['onDuplicate'])
  })

  test('options of the publisher that cannot work', () => {
    expect(() => setup({ maxPayloadBytes: 0 })).toThrow(InvalidOptionsError)
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
    ['a pg pool', { connect: () => undefined, query: () => undefined, totalCount: 0, idleCount: 0 }],
    ['a mysql2 pool', { getConnection: () => undefined, query: () => undefined }],
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

  const missing: readonly (readonly [string, unknown])[] = [
    ['nothing', undefined],
    ['null', null],
    ['a text', 'postgres://localhost'],
    ['a list', []],
  ]
  test.each(missing)(
    '%s in place of a transaction is told with the call as it should be',
    async (_, handle) => {
      const { store, bus } = setup()
      await expect(bus.publish(handle as Transaction, 'OrderPlaced', input)).rejects.toThrow(
        'publish was called without a transaction, so nothing was written. The first argument is the client that your ' +
          'transaction runs on: outbox.inTransaction(pool, async (tx) => { await outbox.publish(tx, "OrderPlaced", ' +
          '{ aggregateId, payload }) })',
      )
      const batch = [{ type: 'OrderPlaced' as const, ...input }]
      await expect(bus.publishAll(handle as Transaction, batch)).rejects.toThrow(
        'outbox.publishAll(tx, [ … ])',
      )
      expect(store.calls).toEqual([])
    },
  )

  test('a transaction that was left out altogether is told', async () => {
    const { bus } = setup()
    const leftOut = bus.publish('OrderPlaced' as never, input as never, undefined as never)
    await expect(leftOut).rejects.toThrow('await outbox.publish(tx, "OrderPlaced", { aggregateId, payload })')
    const batch = [{ type: 'OrderPlaced', ...input }]
    await expect(bus.publishAll(batch as never, undefined as never)).rejects.toThrow(NotInTransactionError)
  })
})
