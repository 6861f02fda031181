import { describe, expect, test } from 'vitest'
import { type AlertSink, type CommitpostError, slackSink, type WorkerEvent } from '../../src/index.ts'
import { deafUrl, Receiver } from '../alert/receiver.ts'
import { recordingSink } from '../alert/support.ts'
import { completeOrders, numbers, openShop, processor, type Shop, SOON } from './dlq-system.ts'
import { eventually, recordingLogger } from './support.ts'

const BAD = 666
const ATTEMPTS = 3
const SOON_AGAIN = { attempts: ATTEMPTS, everyMs: 50 } as const
/** For a sink that never answers. One that does may take as long as it likes: a busy machine is no fault of it. */
const QUICK = { ...SOON_AGAIN, timeoutMs: 200 } as const
const PATIENT = { ...SOON_AGAIN, timeoutMs: 60_000 } as const

/** Fails for one order, and takes all others. */
const handle = ({ payload }: { readonly payload: { readonly orderId: number } }): void => {
  if (payload.orderId === BAD) throw new Error('the stock service refused')
}

const failuresOf = (told: readonly WorkerEvent[]): readonly CommitpostError[] =>
  told.flatMap((event) =>
    event.kind === 'error' && event.during === 'alert' ? [event.error as CommitpostError] : [],
  )

/** One order that fails, and then many that do not, with a sink that is no good. */
async function sellWith(shop: Shop, sinks: readonly AlertSink[], options: object = QUICK): Promise<void> {
  const subscription = processor(handle, { ...SOON, maxAttempts: 1 })
  await shop.run([subscription], { alerts: { sinks, ...options } })
  await completeOrders(shop, [BAD])
  await completeOrders(shop, numbers(1, 200))
}

describe('a sink that is no good delays no delivery and is told of, without its secret', () => {
  test('one that hangs, with minutes to do so', async () => {
    await using receiver = await Receiver.start()
    receiver.answer = () => null
    await using shop = await openShop()
    await sellWith(shop, [slackSink({ url: receiver.url })], { timeoutMs: 60_000 })
    await receiver.received(1)
    await shop.untilSettled()
    expect(await shop.count('outbox_delivery', "status = 'DONE'")).toBe(200)
    // It hangs still, and nobody was kept waiting.
    expect(failuresOf(shop.told)).toEqual([])
  })

  test('one that hangs is given up after its attempts', async () => {
    await using receiver = await Receiver.start()
    receiver.answer = () => null
    await using shop = await openShop()
    await sellWith(shop, [slackSink({ url: receiver.url })])
    await eventually('it is told of', () => failuresOf(shop.told).length > 0)
    expect(failuresOf(shop.told)[0]).toMatchObject({ code: 'ALERT_NOT_SENT' })
    expect(failuresOf(shop.told)[0]?.message).toContain('slack')
    await shop.untilSettled()
  })

  test('one that answers 500, and takes it later', async () => {
    await using receiver = await Receiver.start()
    receiver.answer = (n) => ({ status: n < ATTEMPTS ? 500 : 200 })
    await using shop = await openShop()
    await sellWith(shop, [slackSink({ url: receiver.url })], PATIENT)
    await shop.untilSettled()
    await eventually('it is told of', () => failuresOf(shop.told).length > 0)
    expect(failuresOf(shop.told)[0]?.message).toBe(
      'The alert "deadLetter:1" could not be sent to slack: SinkError: it answered 500',
    )
    // What nobody could be told is told by the next look.
    await receiver.received(ATTEMPTS + 1)
    await eventually(
      'it is written down',
      async () => (await shop.count('outbox_dead_letter', 'told_at is not null')) === 1,
    )
    expect(receiver.requests).toHaveLength(ATTEMPTS + 1)
  })

  test('one where nobody listens, in the log of the worker', async () => {
    const url = await deafUrl()
    await using shop = await openShop()
    const { logger, lines } = recordingLogger()
    const subscription = processor(handle, { ...SOON, maxAttempts: 1 })
    await shop.run([subscription], { logger, alerts: { sinks: [slackSink({ url })], ...PATIENT } })
    await completeOrders(shop, [BAD])
    const line = () => lines.find(({ fields }) => fields['during'] === 'alert')
    await eventually('it is logged', () => line() !== undefined)
    expect(line()).toMatchObject({ level: 'error', message: 'alert failed; the worker goes on' })
    expect(JSON.stringify(lines)).toContain('it could not be reached (ECONNREFUSED)')
    expect(JSON.stringify(lines)).not.toContain('SECRET')
  })

  test('one beside others, which get it at once and once', async () => {
    await using receiver = await Receiver.start()
    receiver.answer = () => null
    await using shop = await openShop()
    const good = recordingSink()
    await sellWith(shop, [slackSink({ url: receiver.url }), good], { ...QUICK, timeoutMs: 60_000 })
    await eventually('the other is told', () => good.alerts.some(({ rule }) => rule === 'deadLetter'))
    await eventually(
      'it is written down',
      async () => (await shop.count('outbox_dead_letter', 'told_at is not null')) === 1,
    )
    expect(good.alerts.filter(({ rule }) => rule === 'deadLetter')).toHaveLength(1)
  })
})

test('a worker that stops while a sink hangs does not wait for it', async () => {
  await using receiver = await Receiver.start()
  receiver.answer = () => null
  await using shop = await openShop()
  const subscription = processor(handle, { ...SOON, maxAttempts: 1 })
  const worker = await shop.run([subscription], {
    alerts: { sinks: [slackSink({ url: receiver.url })], timeoutMs: 60_000 },
  })
  await completeOrders(shop, [BAD])
  await receiver.received(1)
  await worker.stop()
  // Nobody was told, so another tells.
  expect(await shop.count('outbox_dead_letter', 'told_at is null')).toBe(1)
  expect(
    shop.told.filter((event) => event.kind === 'error' && !['alert', 'listen'].includes(event.during)),
  ).toEqual([])
})
