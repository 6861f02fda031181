import { describe, expect, test } from 'vitest'
import type { BatchInput } from '../../src/publish/event-bus.ts'
import { DuplicateEventError } from '../../src/runtime/errors.ts'
import { isUuidV7 } from '../../src/runtime/ids.ts'
import { type Events, problemsOf, setup, TRACEPARENT, tx, UUID } from './support.ts'

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
