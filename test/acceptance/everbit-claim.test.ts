import { describe, expect, test } from 'vitest'
import type { Transaction } from '../../src/index.ts'
import { type Subscription, subscription } from '../../src/index.ts'
import { type EverbitEvents, openEverbit, publishCommands } from './everbit-system.ts'
import { eventually, type System, signal } from './support.ts'

type EverbitSubscription = Subscription<EverbitEvents, Transaction>
type Everbit = System<EverbitEvents>

/** Whether anybody holds a lock on the deliveries, or can keep others from locking one. */
async function isLocked(everbit: Everbit, eventId: string): Promise<boolean> {
  const locks = await everbit.value<string>(
    `select count(*) from pg_locks l join pg_database d on d.oid = l.database
      where d.datname = current_database() and l.relation = 'outbox_delivery'::regclass
        and l.pid <> pg_backend_pid()`,
  )
  if (Number(locks) > 0) return true
  const sql = 'select 1 from outbox_delivery where event_id = $1 for update nowait'
  return everbit.pool.query(sql, [eventId]).then(
    () => false,
    () => true,
  )
}

describe('claims of everbit', () => {
  test('E2 any number of workers share a stream, and no event is handled twice', async () => {
    await using everbit = await openEverbit()
    const handledBy = new Map<string, Set<string>>()
    const runs: string[] = []
    const allAtWork = signal()
    const executor = (worker: string): EverbitSubscription =>
      subscription('order-executor', {
        streams: ['everbit.trade.command'],
        batchSize: 5,
        concurrency: 2,
        pollMs: 20,
        on: {
          CreateOrderAttempt: async (event) => {
            runs.push(event.eventId)
            handledBy.set(worker, (handledBy.get(worker) ?? new Set()).add(event.eventId))
            if (handledBy.size === 4) allAtWork.happen()
            await allAtWork.happened
          },
        },
      })
    for (const worker of ['w1', 'w2', 'w3', 'w4']) await everbit.runElsewhere([executor(worker)])
    const published = await Promise.all(
      Array.from({ length: 8 }, (_, batch) => publishCommands(everbit, 25, batch * 25)),
    )
    await everbit.untilSettled()
    expect(runs.toSorted()).toEqual(published.flat().toSorted())
    expect([...handledBy.keys()].toSorted()).toEqual(['w1', 'w2', 'w3', 'w4'])
    expect(await everbit.count('outbox_delivery', "status = 'DONE' and attempt_count = 1")).toBe(200)
  })

  test('E2 the claim is committed before its handler runs, and no transaction is open meanwhile', async () => {
    await using everbit = await openEverbit()
    const handled = signal()
    await everbit.run(
      [
        subscription('order-executor', {
          on: {
            CreateOrderAttempt: async (event, ctx) => {
              // Seen from another connection, so it is committed.
              expect(await everbit.delivery(event.eventId)).toMatchObject({
                status: 'PROCESSING',
                locked_by: 'order-executor-worker',
                attempt_count: 1,
              })
              // Polling goes on beside this handler; a claim transaction of its own would never end.
              await eventually('no lock is held', async () => !(await isLocked(everbit, event.eventId)))
              expect(ctx.lease).not.toBeNull()
              handled.happen()
            },
          },
        }),
      ],
      { workerId: 'order-executor-worker' },
    )
    const [eventId = ''] = await publishCommands(everbit, 1)
    await handled.happened
    await everbit.untilStatus(eventId, 'DONE')
    expect(everbit.toldOf('retried')).toEqual([])
  })

  test('E2 what somebody else has locked is skipped, not waited for', async () => {
    await using everbit = await openEverbit()
    const handled: string[] = []
    const executor = (): EverbitSubscription =>
      subscription('order-executor', {
        on: { CreateOrderAttempt: (event) => void handled.push(event.eventId) },
      })
    await (await everbit.run([executor()])).stop()
    const [locked = '', ...others] = await publishCommands(everbit, 10)
    const holder = await everbit.pool.connect()
    try {
      await holder.query('begin')
      await holder.query('select 1 from outbox_delivery where event_id = $1 for update', [locked])
      await everbit.run([executor()])
      await eventually('the others are handled', () => handled.length === 9)
      expect(handled.toSorted()).toEqual(others.toSorted())
    } finally {
      await holder.query('rollback')
      holder.release()
    }
    await everbit.untilStatus(locked, 'DONE')
    expect(handled).toHaveLength(10)
  })

  test('E8 the four named workers each take their own stream, and nothing else', async () => {
    await using everbit = await openEverbit()
    const { outbox, pool } = everbit
    const taken: string[] = []
    const workers = {
      'order-executor': 'everbit.trade.command',
      notification: 'everbit.trade.event',
      backtest: 'everbit.backtest.command',
      system: 'everbit.system.event',
    }
    for (const [name, stream] of Object.entries(workers)) {
      const on = {
        '*': async (event: { readonly eventId: string; readonly type: string }) => {
          const row = await everbit.delivery(event.eventId)
          taken.push(`${row?.locked_by} took ${event.type}`)
        },
      }
      await everbit.runElsewhere([subscription(name, { streams: [stream], on })], {
        workerId: `${name}-worker`,
      })
    }
    const identifier = 'id-1'
    await outbox.inTransaction(pool, (tx) =>
      outbox.publishAll(tx, [
        {
          type: 'CreateOrderAttempt',
          aggregateId: 'i',
          payload: { orderIntentId: 'i', attemptNo: 1, identifier },
        },
        { type: 'OrderAccepted', aggregateId: 'a', payload: { identifier } },
        { type: 'RunBacktest', aggregateId: 'j', payload: { jobId: 'j' } },
        { type: 'KillSwitchEnabled', aggregateId: 'OWNER', payload: { reason: 'manual' } },
        // Of the fifth stream, which none of them has.
        { type: 'BacktestCompleted', aggregateId: 'j', payload: { jobId: 'j', profitRate: 0.03 } },
      ]),
    )
    await everbit.untilSettled()
    expect(taken.toSorted()).toEqual([
      'backtest-worker took RunBacktest',
      'notification-worker took OrderAccepted',
      'order-executor-worker took CreateOrderAttempt',
      'system-worker took KillSwitchEnabled',
    ])
  })

  test('E9 the events of a worker that vanished are claimed again once its lease has ended', async () => {
    await using everbit = await openEverbit()
    const handled: string[] = []
    const executor = (): EverbitSubscription =>
      subscription('order-executor', {
        on: {
          CreateOrderAttempt: (event, ctx) => void handled.push(`${event.eventId} attempt ${ctx.attempt}`),
        },
      })
    await (await everbit.run([executor()])).stop()
    const published = await publishCommands(everbit, 5)
    const inHand = await everbit.claimAndVanish('order-executor', { leaseMs: 100 })
    expect(inHand).toHaveLength(5)
    expect(await everbit.count('outbox_delivery', "status = 'PROCESSING'")).toBe(5)
    await everbit.run([executor()])
    await everbit.untilSettled()
    // The attempt of the crash is given back: any of the five may have caused it, and four are innocent.
    expect(handled.toSorted()).toEqual(published.map((id) => `${id} attempt 1`).toSorted())
    await everbit.untilTold('recovered')
  })

  test('E9 a lease that has not ended protects its event, however long the handler takes', async () => {
    await using everbit = await openEverbit()
    const runs: string[] = []
    const [started, released] = [signal(), signal()]
    const executor = (worker: string): EverbitSubscription =>
      subscription('order-executor', {
        on: {
          CreateOrderAttempt: async (event) => {
            runs.push(`${worker} ${event.aggregateId}`)
            if (event.aggregateId !== 'intent-0') return
            started.happen()
            await released.happened
          },
        },
      })
    const slow = await everbit.runElsewhere([executor('slow')], { leaseMs: 10_000, workerId: 'slow' })
    const [eventId = ''] = await publishCommands(everbit, 1)
    await started.happened
    const firstEnd = (await everbit.delivery(eventId))?.locked_until
    await everbit.runElsewhere([executor('other')])
    // Without heartbeats it would be lapsed by now, by the database's own clock.
    await eventually('the first lease would have ended', () =>
      everbit.value<boolean>(`select clock_timestamp() > $1::timestamptz + interval '200 ms'`, [firstEnd]),
    )
    expect(await everbit.delivery(eventId)).toMatchObject({ status: 'PROCESSING', locked_by: 'slow' })
    released.happen()
    await everbit.untilStatus(eventId, 'DONE')
    await slow.stop()
    expect(runs).toEqual(['slow intent-0'])
  })
})
