import { expect, onTestFinished, test } from 'vitest'
import type { AlertSink } from '../../src/alert/alert.ts'
import { SinkSender } from '../../src/alert/sink-sender.ts'
import { SinkError } from '../../src/alert/sinks/sink-error.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { deadLetterAlert } from './support.ts'

function scene(send: AlertSink['send']) {
  const clock = new ManualClock()
  const failures: string[] = []
  const stop = new AbortController()
  const sender = new SinkSender({
    sink: { send },
    name: 'slack',
    clock,
    random: () => 0.5,
    timeoutMs: 5_000,
    attempts: 3,
    signal: stop.signal,
    onFailure: ({ code, message }) => failures.push(`${code} ${message}`),
  })
  return { clock, failures, sender, stop }
}

test('a sink that fails is tried three times, with pauses, and then told of once', async () => {
  const triedAt: number[] = []
  const { clock, failures, sender } = scene(async () => {
    triedAt.push(clock.monotonicMs())
    throw new Error('boom')
  })
  const taken = sender.offer(deadLetterAlert())
  await clock.advance(60_000)
  expect(await taken).toBe(false)
  expect(triedAt).toEqual([0, 500, 1_500])
  expect(failures).toEqual(['ALERT_NOT_SENT The alert "deadLetter:17" could not be sent to slack: boom'])
})

test('a sink that recovers meanwhile gets it', async () => {
  let tries = 0
  const { clock, failures, sender } = scene(async () => {
    tries += 1
    if (tries < 3) throw new Error('boom')
  })
  const taken = sender.offer(deadLetterAlert())
  await clock.advance(10_000)
  expect(await taken).toBe(true)
  expect(failures).toEqual([])
})

test('a sink that hangs costs a bounded time: those that wait have one try each, all but the first of them together', async () => {
  const signals: AbortSignal[] = []
  const { clock, failures, sender } = scene((_, signal) => {
    signals.push(signal)
    return new Promise(() => {})
  })
  const warnings: Error[] = []
  const onWarning = (warning: Error): number => warnings.push(warning)
  process.on('warning', onWarning)
  onTestFinished(() => void process.off('warning', onWarning))
  const taken = Array.from({ length: 101 }, (_, n) => sender.offer(deadLetterAlert({ key: `alert ${n}` })))
  await clock.advance(3 * 5_000 + 1_500)
  expect(failures).toHaveLength(1)
  await clock.advance(2 * 5_000)
  expect(new Set(await Promise.all(taken))).toEqual(new Set([false]))
  expect(signals).toHaveLength(3 + 100)
  expect(signals.every(({ aborted }) => aborted)).toBe(true)
  expect(new Set(failures).size).toBe(101)
  expect(warnings).toEqual([])
})

test('those that wait behind one that failed are sent, once the sink is back', async () => {
  let tries = 0
  const keys: string[] = []
  const { clock, failures, sender } = scene(async ({ key }) => {
    tries += 1
    // The first fails for good; of the others the third fails once, and has its attempts as ever.
    if (tries <= 3 || tries === 5) throw new Error('boom')
    keys.push(key)
  })
  const taken = ['1', '2', '3', '4', '5'].map((key) => sender.offer(deadLetterAlert({ key })))
  await clock.advance(60_000)
  expect(await Promise.all(taken)).toEqual([false, true, true, true, true])
  expect(keys).toEqual(['2', '3', '4', '5'])
  expect(failures).toEqual(['ALERT_NOT_SENT The alert "1" could not be sent to slack: boom'])
})

test('every alert that waited for a sink that stays away was tried, and is named', async () => {
  const keys: string[] = []
  const { clock, failures, sender } = scene(async ({ key }) => {
    keys.push(key)
    if (key !== '5') throw new Error('boom')
  })
  const taken = ['1', '2', '3', '4', '5'].map((key) => sender.offer(deadLetterAlert({ key })))
  await clock.advance(1_500)
  expect(await Promise.all(taken)).toEqual([false, false, false, false, true])
  expect(keys).toEqual(['1', '1', '1', '2', '3', '4', '5'])
  expect(failures.map((failure) => failure.slice(0, 28))).toEqual(
    ['1', '2', '3', '4'].map((key) => `ALERT_NOT_SENT The alert "${key}"`),
  )
})

test('what a sink refuses is not tried again, and harms no other alert', async () => {
  const keys: string[] = []
  const { clock, sender } = scene(async ({ key }) => {
    keys.push(key)
    if (key === 'bad') throw new SinkError('it answered 400', { permanent: true })
  })
  const taken = [
    sender.offer(deadLetterAlert({ key: 'bad' })),
    sender.offer(deadLetterAlert({ key: 'good' })),
  ]
  await clock.advance(0)
  expect(await Promise.all(taken)).toEqual([false, true])
  expect(keys).toEqual(['bad', 'good'])
})

test('a sink that asks to wait is waited for, within bounds', async () => {
  const triedAt: number[] = []
  const { clock, sender } = scene(async () => {
    triedAt.push(clock.monotonicMs())
    throw new SinkError('it answered 429', { permanent: false, retryAfterMs: 3_600_000 })
  })
  const taken = sender.offer(deadLetterAlert())
  await clock.advance(60_000)
  expect(await taken).toBe(false)
  expect(triedAt).toEqual([0, 5_000, 10_000])
})

test('of more than a hundred that wait the rest are refused at once', async () => {
  const { failures, sender, stop } = scene(() => new Promise(() => {}))
  const taken = Array.from({ length: 103 }, () => sender.offer(deadLetterAlert()))
  expect(await taken.at(-1)).toBe(false)
  expect(failures).toHaveLength(2)
  stop.abort(new Error('stopping'))
  expect((await Promise.all(taken)).includes(true)).toBe(false)
})

test('a sink that throws at once, or rejects with nothing, does no harm', async () => {
  const thrown = scene(() => {
    throw new SinkError('no', { permanent: true })
  })
  expect(await thrown.sender.offer(deadLetterAlert())).toBe(false)
  const empty = scene(() => Promise.reject())
  const taken = empty.sender.offer(deadLetterAlert())
  await empty.clock.advance(60_000)
  expect(await taken).toBe(false)
  expect(empty.failures).toHaveLength(1)
})

test('what waits when the turn has lapsed is not sent any more: another may have told it by then', async () => {
  const keys: string[] = []
  const { clock, sender, failures } = scene(async ({ key }) => {
    keys.push(key)
    await clock.sleep(3_000)
  })
  const isOurs = (): boolean => clock.monotonicMs() < 2_000
  const taken = ['first', 'second'].map((key) => sender.offer(deadLetterAlert({ key }), isOurs))
  await clock.advance(10_000)
  expect(await Promise.all(taken)).toEqual([true, false])
  expect(keys).toEqual(['first'])
  expect(failures).toEqual([])
})
