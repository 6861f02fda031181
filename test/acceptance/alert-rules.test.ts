import { describe, expect, test } from 'vitest'
import { defineEvents, pagerDutySink, slackSink, unchecked } from '../../src/index.ts'
import { Receiver } from '../alert/receiver.ts'
import { recordingSink } from '../alert/support.ts'
import { completeOrders, numbers, openShop, processor, type Shop, SOON } from './dlq-system.ts'
import { eventually, openSystem } from './support.ts'

const noop = (_event: { readonly payload: { readonly orderId: number } }): void => {}

/** A shop whose processor was paused, with so many orders that have waited for so long. */
async function waitingShop(shop: Shop, orders: number, waited: string, handle = noop): Promise<void> {
  await shop.run([processor(handle, { ...SOON, maxAttempts: 1 })])
  await shop.outbox.pause('outbox-event-processor', { operator: 'kim' })
  await completeOrders(shop, numbers(1, orders))
  await age(shop, waited)
}

async function age(shop: Shop, waited: string): Promise<void> {
  await shop.pool.query(
    `update outbox_delivery set created_at = clock_timestamp() - $1::interval where status = 'PENDING'`,
    [waited],
  )
}

const keysTold = async (shop: Shop): Promise<readonly string[]> => {
  await using monitor = shop.outbox.monitor({ sinks: [recordingSink()] })
  return (await monitor.check()).told.map(({ key }) => key)
}

describe('U9 alarms', () => {
  test('unpublished events > 1000, the oldest older than 1 minute, and who paused it', async () => {
    await using shop = await openShop()
    await waitingShop(shop, 1_001, '61 seconds')
    const sink = recordingSink()
    await using monitor = shop.outbox.monitor({ sinks: [sink] })
    await monitor.check()
    expect(sink.alerts.map(({ key }) => key)).toEqual([
      'unpublished:outbox-event-processor',
      'oldestPending:outbox-event-processor',
    ])
    expect(sink.alerts[0]?.facts).toContainEqual({ label: 'Paused By', value: 'kim' })
  })

  test('none at 1000 that are younger', async () => {
    await using shop = await openShop()
    await waitingShop(shop, 1_000, '30 seconds')
    expect(await keysTold(shop)).toEqual([])
  })

  test('failed > 10 and mean retries > 1', async () => {
    await using shop = await openShop()
    const unsteady = (): void => {
      throw new Error('unsteady')
    }
    await shop.run([processor(unsteady, { ...SOON, maxAttempts: 3 })])
    await completeOrders(shop, numbers(1, 11))
    await shop.untilSettled()
    expect(await keysTold(shop)).toEqual(
      expect.arrayContaining([
        'dead:outbox-event-processor',
        'meanRetries:outbox-event-processor',
      ]) as string[],
    )
  })
})

test('L7 100 pending for over 5 minutes go to PagerDuty, and failures to Slack', async () => {
  await using slack = await Receiver.start()
  await using pager = await Receiver.start()
  await using shop = await openShop()
  const refuseTheLast = ({ payload }: Parameters<typeof noop>[0]): void => {
    if (payload.orderId === 101) throw new Error('the stock service refused')
  }
  await waitingShop(shop, 99, '5 minutes 1 second', refuseTheLast)
  await using monitor = shop.outbox.monitor({
    sinks: [
      { sink: slackSink({ url: slack.url }), rules: ['deadLetter', 'unresolved'] },
      { sink: pagerDutySink({ routingKey: 'R1', url: pager.url }), rules: ['stuckPending'] },
    ],
  })
  await monitor.check()
  expect(pager.requests).toEqual([])
  await completeOrders(shop, [100])
  await age(shop, '5 minutes 1 second')
  await monitor.check()
  expect(slack.requests).toEqual([])
  expect(pager.json()).toMatchObject([
    { event_action: 'trigger', dedup_key: 'commitpost:stuckPending:outbox-event-processor' },
  ])
  await shop.outbox.resume('outbox-event-processor', { operator: 'kim' })
  await shop.untilSettled()
  await monitor.check()
  expect(pager.json()[1]).toMatchObject({ event_action: 'resolve', payload: { class: 'stuckPending' } })
  await completeOrders(shop, [101])
  await shop.untilSettled()
  await monitor.check()
  expect(slack.requests.map(({ body }) => body)).toEqual([
    expect.stringContaining('the stock service refused'),
  ])
  expect(pager.requests).toHaveLength(2)
})

test('L13 past 1,000 events per second the log stream is advised', async () => {
  await using shop = await openShop()
  await shop.run([processor(noop)])
  await using monitor = shop.outbox.monitor({ sinks: [recordingSink()] })
  await monitor.check()
  await completeOrders(shop, [1])
  // As if 20,000 had been published in the last ten seconds.
  await shop.pool.query(
    `update outbox_monitor set rate_position = rate_position - 20000, rate_at = clock_timestamp() - interval '10 seconds'`,
  )
  const { told, seen } = await monitor.check()
  expect(Math.round((seen.eventsPerSecond ?? 0) / 1_000)).toBe(2)
  expect(told).toMatchObject([{ rule: 'eventRate', severity: 'info' }])
  expect(told[0]?.advice).toMatch(
    /1,000 events per second, or .* 500 ms .* the log stream or change data capture/,
  )
  // Without a new measurement nothing is said to be over.
  expect((await monitor.check()).told).toEqual([])
})

describe('workers', () => {
  test('one whose heartbeat ended and that did not leave is told of once', async () => {
    await using shop = await openShop()
    await shop.run([processor(noop)])
    await shop.pool.query(
      `insert into outbox_worker (worker_id, subscription_ids, host, pid, until, seen_at)
       select 'gone', array_agg(id), 'app-2', 4711, now() - interval '61 seconds', now() - interval '90 seconds'
         from outbox_subscription`,
    )
    const sink = recordingSink()
    await using monitor = shop.outbox.monitor({ sinks: [sink] })
    await monitor.check()
    await monitor.check()
    expect(sink.alerts).toMatchObject([
      { rule: 'workerMissing', kind: 'notice', data: { workers: [{ workerId: 'gone', host: 'app-2' }] } },
    ])
  })

  test('a subscription that nobody serves, while its events wait', async () => {
    await using shop = await openShop()
    const worker = await shop.run([processor(noop)])
    await worker.stop()
    await completeOrders(shop, [1])
    await shop.pool.query(`update outbox_delivery set created_at = now() - interval '2 minutes'`)
    expect(await keysTold(shop)).toEqual([
      'oldestPending:outbox-event-processor',
      'workerMissing:outbox-event-processor',
    ])
    await shop.run([processor(noop)])
    await shop.untilSettled()
    await using monitor = shop.outbox.monitor({ sinks: [recordingSink()] })
    expect((await monitor.check()).told.map(({ kind }) => kind)).toEqual(['recovered', 'recovered'])
  })
})

test('U10 no payload in any alert, and what is sensitive is masked where errors quote it', async () => {
  const members = defineEvents({
    MemberJoined: {
      stream: 'umbra.member',
      aggregate: 'member',
      schema: unchecked<{ email: string; plan: string }>(),
      sensitive: ['email'],
    },
  })
  await using slack = await Receiver.start()
  await using umbra = await openSystem(members)
  const mailer = umbra.outbox.subscription('mailer', {
    maxAttempts: 1,
    on: {
      MemberJoined: ({ payload }) => {
        throw new Error(`550 no such mailbox: ${payload.email}`)
      },
    },
  })
  await umbra.run([mailer], { alerts: { sinks: [slackSink({ url: slack.url })] } })
  await umbra.publish('MemberJoined', {
    aggregateId: 'm1',
    payload: { email: 'lee@example.com', plan: 'gold-plan' },
  })
  await eventually('it is told', () => slack.requests.length > 0)
  expect(slack.requests[0]?.body).toContain('550 no such mailbox: ***')
  expect(slack.requests[0]?.body).not.toMatch(/lee@example|gold-plan/)
})
