import type { PoolClient } from 'pg'
import { describe, expect, test } from 'vitest'
import { subscription } from '../../src/index.ts'
import { resolveSubscription } from '../../src/worker/resolve-subscription.ts'
import { ingest, ivmEvents, openIvm, POLLING, payloadOf, product } from './ivm-system.ts'
import { deliveredTimes } from './support.ts'

describe('ingestion of ivm', () => {
  test('I3 the business row and its event are written in one transaction, under tenantId:entityKey', async () => {
    await using ivm = await openIvm()
    await ingest(ivm, product)
    expect(await ivm.count('raw_data')).toBe(1)
    expect(
      await ivm.rows('select aggregate_type, aggregate_id, event_type, payload from outbox_event'),
    ).toEqual([
      {
        aggregate_type: 'raw_data',
        aggregate_id: 'tenant-1:product-123',
        event_type: 'RawDataIngested',
        payload: payloadOf(product),
      },
    ])
  })

  test('I3 a fault of the application leaves neither', async () => {
    await using ivm = await openIvm()
    const fault = (): Promise<void> => Promise.reject(new Error('the application failed'))
    await expect(ingest(ivm, product, fault)).rejects.toThrow('the application failed')
    // A connection that is cut in mid-transaction is the same to the database as a process that is killed.
    const cut = async (tx: PoolClient): Promise<void> =>
      void (await tx.query('select pg_terminate_backend(pg_backend_pid())'))
    await expect(ingest(ivm, product, cut)).rejects.toThrow()
    expect(await ivm.count('raw_data')).toBe(0)
    expect(await ivm.count('outbox_event')).toBe(0)
    expect(await ivm.count('outbox_delivery')).toBe(0)
  })

  test('I3 a put that is repeated changes nothing and tells nobody', async () => {
    await using ivm = await openIvm()
    const results = await Promise.all(Array.from({ length: 5 }, () => ingest(ivm, product)))
    expect(results.filter((id) => id !== null)).toHaveLength(1)
    expect(await ivm.count('raw_data')).toBe(1)
    expect(await ivm.count('outbox_event')).toBe(1)
  })
})

test('I1 the polling worker of version 1, every second and a hundred at most, is exactly what the options say', () => {
  const poller = { name: 'slicing', options: { ...POLLING, on: { RawDataIngested: () => {} } } }
  expect(resolveSubscription(ivmEvents, poller)).toMatchObject(POLLING)
})

describe('idempotent consumers of ivm', () => {
  test('I6 by eventId: delivered three times, sliced once', async () => {
    await using ivm = await openIvm()
    const firsts: boolean[] = []
    await ivm.run([
      subscription('slicing', {
        retry: { delayMs: () => 0 },
        pollMs: 20,
        middleware: [deliveredTimes(3)],
        on: {
          RawDataIngested: async (event, ctx) => {
            const { first } = await ctx.once(ivm.pool, async (tx) => {
              await tx.query('insert into slice values ($1, $2)', [event.aggregateId, event.payload.version])
            })
            firsts.push(first)
          },
        },
      }),
    ])
    await ingest(ivm, product)
    await ivm.untilSettled()
    expect(firsts).toEqual([true, false, false])
    expect(await ivm.rows('select aggregate_id, version, applied from slice')).toEqual([
      { aggregate_id: 'tenant-1:product-123', version: '1', applied: 1 },
    ])
  })

  test('I6 by eventId: an effect that failed is not taken for done', async () => {
    await using ivm = await openIvm()
    await ivm.run([
      subscription('slicing', {
        retry: { delayMs: () => 0 },
        pollMs: 20,
        on: {
          RawDataIngested: (event, ctx) =>
            ctx.once(ivm.pool, async (tx) => {
              await tx.query('insert into slice values ($1, $2)', [event.aggregateId, event.payload.version])
              if (ctx.attempt < 3) throw new Error('slicing failed half way')
            }),
        },
      }),
    ])
    await ingest(ivm, product)
    await ivm.untilTold('handled')
    expect(ivm.toldOf('handled')).toMatchObject([{ attempt: 3 }])
    expect(await ivm.count('slice')).toBe(1)
  })

  test('I6 by (aggregateId, version): two events of one version have one effect', async () => {
    await using ivm = await openIvm()
    await ivm.run([
      subscription('slicing', {
        retry: { delayMs: () => 0 },
        pollMs: 20,
        middleware: [deliveredTimes(2)],
        on: {
          RawDataIngested: async (event) => {
            await ivm.pool.query(
              'insert into slice values ($1, $2) on conflict (aggregate_id, version) do nothing',
              [event.aggregateId, event.payload.version],
            )
          },
        },
      }),
    ])
    // As a connector that was restarted would: the same change again, under another event id.
    for (const version of [1, 1, 2, 1]) {
      const payload = payloadOf({ ...product, version })
      await ivm.publish('RawDataIngested', { aggregateId: 'tenant-1:product-123', payload })
    }
    await ivm.untilSettled()
    expect(await ivm.count('outbox_delivery', 'attempt_count = 2')).toBe(4)
    expect(await ivm.rows('select version, applied from slice order by version')).toEqual([
      { version: '1', applied: 1 },
      { version: '2', applied: 1 },
    ])
  })
})
