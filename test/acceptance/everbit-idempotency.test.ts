import { describe, expect, test } from 'vitest'
import { subscription } from '../../src/index.ts'
import { orderExecutor, placeOrder } from './everbit-orders.ts'
import { Exchange, openEverbit } from './everbit-system.ts'
import { deliveredTimes, SHARING } from './support.ts'

const accept = (): Promise<Exchange> => Exchange.open((_, response) => void response.writeHead(201).end())
const soon = { retry: { delayMs: () => 0 }, pollMs: 20 } as const

describe('idempotency of everbit', () => {
  test.each(['ACKED', 'REJECTED', 'THROTTLED', 'UNKNOWN'])(
    'E13 a command for an attempt that is %s ends at once as a no-op',
    async (status) => {
      await using everbit = await openEverbit()
      await using exchange = await accept()
      await everbit.pool.query(`insert into order_intent values ('intent-1', 'KRW-BTC', 'BUY')`)
      await everbit.pool.query(`insert into order_attempt values ('intent-1', 1, 'everbit-intent-1-1', $1)`, [
        status,
      ])
      await everbit.run([orderExecutor(everbit, exchange)])
      const eventId = await placeOrder(everbit, 'intent-1')
      await everbit.untilStatus(eventId, 'DONE')
      expect(exchange.orders).toEqual([])
      expect(await everbit.value('select status from order_attempt')).toBe(status)
    },
  )

  test('E13 a command that is delivered three times sends one order', async () => {
    await using everbit = await openEverbit()
    await using exchange = await accept()
    const executor = orderExecutor(
      everbit,
      { url: exchange.url, completes: false },
      { ...soon, middleware: [deliveredTimes(3)] },
    )
    await everbit.run([executor])
    const eventId = await placeOrder(everbit, 'intent-1')
    await everbit.untilStatus(eventId, 'DONE')
    expect(await everbit.delivery(eventId)).toMatchObject({ attempt_count: 3 })
    expect(exchange.orders).toEqual(['everbit-intent-1-1'])
    expect(await everbit.value('select status from order_attempt')).toBe('ACKED')
    expect(await everbit.count('outbox_event', "event_type = 'OrderAccepted'")).toBe(1)
  })

  test('E13 a command that is completed with its outcome is never delivered again', async () => {
    await using everbit = await openEverbit()
    await using exchange = await accept()
    await everbit.run([orderExecutor(everbit, exchange, { ...soon, middleware: [deliveredTimes(3)] })])
    const eventId = await placeOrder(everbit, 'intent-1')
    await everbit.untilStatus(eventId, 'DONE')
    await everbit.untilStatus(await placeOrder(everbit, 'intent-2'), 'DONE')
    expect(await everbit.delivery(eventId)).toMatchObject({ attempt_count: 1 })
    expect(exchange.orders).toEqual(['everbit-intent-1-1', 'everbit-intent-2-1'])
  })

  test('E13 several commands for one attempt send one order: UNIQUE(order_intent_id, attempt_no)', async () => {
    await using everbit = await openEverbit()
    await using exchange = await accept()
    await everbit.runElsewhere([orderExecutor(everbit, exchange, { order: 'aggregate' })], SHARING)
    await everbit.runElsewhere([orderExecutor(everbit, exchange, { order: 'aggregate' })], SHARING)
    await everbit.untilLanesAreShared(2)
    const commands = await Promise.all(Array.from({ length: 6 }, () => placeOrder(everbit, 'intent-1')))
    for (const eventId of commands) await everbit.untilStatus(eventId, 'DONE')
    expect(exchange.orders).toEqual(['everbit-intent-1-1'])
    expect(await everbit.rows('select status from order_attempt')).toEqual([{ status: 'ACKED' }])
    const insert = (values: string): Promise<unknown> =>
      everbit.pool.query(`insert into order_attempt values ${values}`)
    await expect(insert(`('intent-1', 1, 'another', 'PREPARED')`)).rejects.toMatchObject({ code: '23505' })
    await expect(insert(`('intent-1', 2, 'everbit-intent-1-1', 'PREPARED')`)).rejects.toMatchObject({
      code: '23505',
    })
  })

  test('E13 a worker that died after sending leaves UNKNOWN, not a second order', async () => {
    await using everbit = await openEverbit()
    await using exchange = await accept()
    await (await everbit.run([orderExecutor(everbit, exchange)])).stop()
    const eventId = await placeOrder(everbit, 'intent-1')
    await everbit.pool.query(`insert into order_attempt values ('intent-1', 1, 'everbit-intent-1-1', 'SENT')`)
    expect(await everbit.claimAndVanish('order-executor')).toEqual([eventId])
    await everbit.run([orderExecutor(everbit, exchange)])
    await everbit.untilStatus(eventId, 'DONE')
    expect(exchange.orders).toEqual([])
    expect(await everbit.value('select status from order_attempt')).toBe('UNKNOWN')
  })

  test('E13 a push is sent once, however often its event arrives: notification_log.event_id is UNIQUE', async () => {
    await using everbit = await openEverbit()
    const sent: string[] = []
    let runs = 0
    await everbit.run([
      subscription('notification', {
        ...soon,
        middleware: [deliveredTimes(4)],
        on: {
          OrderAccepted: async (event) => {
            runs += 1
            const { rowCount } = await everbit.pool.query(
              'insert into notification_log (event_id) values ($1) on conflict (event_id) do nothing',
              [event.eventId],
            )
            if (rowCount === 1) sent.push(event.payload.identifier)
          },
        },
      }),
    ])
    for (const identifier of ['a', 'b', 'c']) {
      await everbit.publish('OrderAccepted', { aggregateId: identifier, payload: { identifier } })
    }
    await everbit.untilSettled()
    expect(runs).toBe(12)
    expect(sent.toSorted()).toEqual(['a', 'b', 'c'])
    expect(await everbit.count('notification_log')).toBe(3)
  })
})
