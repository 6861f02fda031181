import { describe, expect, test } from 'vitest'
import type { Alert, AlertOptions } from '../../src/index.ts'
import { recordingSink } from '../alert/support.ts'
import { completeOrders, numbers, openShop, order, processor, type Shop, SOON } from './dlq-system.ts'
import { eventually, recordingLogger } from './support.ts'

const refuse = (): void => {
  throw new Error('the stock service refused')
}
const AT_ONCE = { ...SOON, maxAttempts: 1 } as const
/** A look at everything in a blink, for what is not told at the moment it happens. */
const OFTEN = { everyMs: 50 } as const

const ofRule = (alerts: readonly Alert[], rule: string): readonly Alert[] =>
  alerts.filter((alert) => alert.rule === rule)

/** A shop whose orders all fail, and what its people were told. */
async function failingShop(shop: Shop, alerts: AlertOptions = {}): Promise<readonly Alert[]> {
  const sink = recordingSink()
  await shop.run([processor(refuse, AT_ONCE)], { alerts: { sinks: [sink], ...alerts } })
  return sink.alerts
}

describe('dead letters', () => {
  test('D3 D5 E12 every one is told of right after the commit that made it, in the log by default', async () => {
    await using shop = await openShop()
    const { logger, lines } = recordingLogger()
    await shop.run([processor(refuse, AT_ONCE)], { logger })
    await completeOrders(shop, [7])
    const block = () => lines.find(({ message }) => message.includes('DLQ ALERT'))
    await eventually('it is told', () => block() !== undefined)
    const [letter] = await shop.outbox.deadLetters.list()
    expect(block()).toMatchObject({
      level: 'error',
      fields: { alert: 'notice', rule: 'deadLetter', eventId: letter?.eventId, eventType: 'OrderCompleted' },
    })
    expect(block()?.message).toMatch(/ Event Type {3}: OrderCompleted\n Aggregate {4}: Order#7\n/)
    expect(block()?.message).toMatch(
      / Retry Count {2}: 0\n Error {8}: HANDLER_ERROR: .*the stock service refused\n/,
    )
  })

  test('D3 never inside it: what is told of is there for everybody to see', async () => {
    await using shop = await openShop()
    const seen: number[] = []
    const sink = { send: async () => void seen.push(await shop.count('outbox_dead_letter')) }
    await shop.run([processor(refuse, AT_ONCE)], { alerts: { sinks: [sink] } })
    await completeOrders(shop, [1])
    await eventually('it is told', () => seen.length > 0)
    expect(seen[0]).toBe(1)
  })

  test('D3 D7 the threshold is checked on the move that reaches it, and told of once', async () => {
    await using shop = await openShop()
    const told = await failingShop(shop)
    for (const n of numbers(1, 9)) {
      await completeOrders(shop, [n])
      await eventually(`letter ${n} is told of`, () => ofRule(told, 'deadLetter').length === n)
    }
    expect(ofRule(told, 'unresolved')).toEqual([])
    await completeOrders(shop, [10])
    await eventually('the threshold is told of', () => ofRule(told, 'unresolved').length > 0)
    await completeOrders(shop, [11])
    await eventually('the next letter is told of', () => ofRule(told, 'deadLetter').length === 11)
    expect(ofRule(told, 'unresolved')).toMatchObject([{ kind: 'alarm', data: { value: 10, threshold: 10 } }])
  })

  test('D6 those that nobody was there to tell of are told of by the look of every minute', async () => {
    await using shop = await openShop()
    await shop.run([processor(refuse, AT_ONCE)])
    await completeOrders(shop, [1, 2])
    await shop.untilSettled()
    const sink = recordingSink()
    await using monitor = shop.newProcess().monitor({ sinks: [sink], ...OFTEN })
    monitor.start()
    await eventually('both are told of', () => ofRule(sink.alerts, 'deadLetter').length === 2)
  })

  test('of more than ten at once people are told together', async () => {
    await using shop = await openShop()
    await shop.run([processor(refuse, AT_ONCE)])
    await completeOrders(shop, numbers(1, 30))
    await shop.untilSettled()
    const sink = recordingSink()
    await using monitor = shop.outbox.monitor({ sinks: [sink] })
    const round = await monitor.check()
    expect(ofRule(round.told, 'deadLetter')).toMatchObject([
      {
        data: {
          count: 30,
          groups: [{ subscription: 'outbox-event-processor', eventType: 'OrderCompleted', count: 30 }],
        },
      },
    ])
    expect((await monitor.check()).told).toEqual([])
  })

  test('E12 what waits for a person is told of until one decides, and then that it is over', async () => {
    await using shop = await openShop()
    const told = await failingShop(shop, { unresolved: 1, ...OFTEN })
    await completeOrders(shop, [1])
    await eventually('the alarm', () => ofRule(told, 'unresolved').length > 0)
    const [letter] = await shop.outbox.deadLetters.list()
    await shop.outbox.deadLetters.resolve(letter?.id ?? '', { operator: 'kim', note: 'by phone' })
    await eventually('its end', () => ofRule(told, 'unresolved').length > 1)
    expect(ofRule(told, 'unresolved').map(({ kind }) => kind)).toEqual(['alarm', 'recovered'])
  })
})

describe('an alarm', () => {
  const told = async (shop: Shop, alerts: AlertOptions): Promise<readonly Alert[]> => {
    await using monitor = shop.newProcess().monitor({ sinks: [recordingSink()], ...alerts })
    return (await monitor.check()).told.filter(({ kind }) => kind !== 'notice')
  }

  test('is told of once by whoever looks, survives restarts, and is repeated after the cool-down', async () => {
    await using shop = await openShop()
    await shop.run([processor(refuse, AT_ONCE)])
    await completeOrders(shop, [1])
    await shop.untilSettled()
    const rules = { unresolved: 1 }
    expect(await told(shop, rules)).toMatchObject([{ kind: 'alarm', key: 'unresolved' }])
    expect(await told(shop, rules)).toEqual([])
    await shop.pool.query(`update outbox_alarm set told_at = told_at - interval '15 minutes'`)
    expect(await told(shop, rules)).toMatchObject([{ kind: 'alarm', key: 'unresolved' }])
    expect(await told(shop, rules)).toEqual([])
  })

  test('of a rule that was switched off is not called over', async () => {
    await using shop = await openShop()
    await shop.run([processor(refuse, AT_ONCE)])
    await completeOrders(shop, [1])
    await shop.untilSettled()
    expect(await told(shop, { unresolved: 1 })).toHaveLength(1)
    expect(await told(shop, { unresolved: null })).toEqual([])
  })
})

test('D6 a report is made every ten minutes: by type, the oldest, and each subscription', async () => {
  await using shop = await openShop()
  await shop.run([processor(refuse, AT_ONCE)])
  await completeOrders(shop, [1, 2])
  await shop.untilSettled()
  const sink = recordingSink()
  await using monitor = shop.outbox.monitor({ sinks: [sink] })
  await monitor.check()
  expect(ofRule(sink.alerts, 'report')).toEqual([])
  await shop.pool.query(`update outbox_monitor set report_at = report_at - interval '10 minutes'`)
  await monitor.check()
  await monitor.check()
  const [letter] = (await shop.outbox.deadLetters.list()).toReversed()
  expect(ofRule(sink.alerts, 'report')).toMatchObject([
    {
      kind: 'report',
      data: {
        unresolved: 2,
        byType: [{ eventType: 'OrderCompleted', count: 2 }],
        oldest: { id: letter?.id },
        subscriptions: [{ name: 'outbox-event-processor', dead: 2 }],
      },
    },
  ])
})

test('D5 in Korean, where that is asked for', async () => {
  await using shop = await openShop()
  const told = await failingShop(shop, { language: 'ko' })
  await shop.publish('OrderCompleted', order(1))
  await eventually('it is told', () => told.length > 0)
  expect(told[0]?.title).toBe('구독 "outbox-event-processor"에서 OrderCompleted 처리가 최종 실패했습니다')
})
