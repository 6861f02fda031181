import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../src/runtime/clock.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'

const DAY = 86_400_000

describe('the system clock', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test('a sleep of 30 days does not fire at once, nor before 30 days', async () => {
    let awake = false
    const slept = systemClock.sleep(30 * DAY).then(() => {
      awake = true
    })
    await vi.advanceTimersByTimeAsync(30 * DAY - 1)
    expect(awake).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await slept
    expect(vi.getTimerCount()).toBe(0)
  })

  test('an abort wakes the sleeper without an error and leaves no timer and no listener', async () => {
    const controller = new AbortController()
    const removed = vi.spyOn(controller.signal, 'removeEventListener')
    const slept = systemClock.sleep(60 * DAY, controller.signal)
    controller.abort(new Error('stop'))
    await expect(slept).resolves.toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
    expect(removed).toHaveBeenCalled()
    await expect(systemClock.sleep(DAY, controller.signal)).resolves.toBeUndefined()
  })

  test('a sleep that ends by itself leaves no listener on a long-lived signal', async () => {
    const { signal } = new AbortController()
    const added = vi.spyOn(signal, 'addEventListener')
    const removed = vi.spyOn(signal, 'removeEventListener')
    const slept = systemClock.sleep(10, signal)
    await vi.advanceTimersByTimeAsync(10)
    await slept
    expect(removed).toHaveBeenCalledTimes(added.mock.calls.length)
  })

  test('nonsense is no wait', async () => {
    for (const ms of [Number.NaN, -5, 0]) {
      const slept = systemClock.sleep(ms)
      await vi.advanceTimersByTimeAsync(1)
      await slept
    }
  })
})

test('monotonic time never runs backwards', () => {
  const first = systemClock.monotonicMs()
  expect(systemClock.monotonicMs()).toBeGreaterThanOrEqual(first)
  expect(systemClock.now()).toBeInstanceOf(Date)
})

describe('the manual clock', () => {
  test('wakes sleepers in order, at their time, and lets each work before the next', async () => {
    const clock = new ManualClock(new Date('2026-01-01T00:00:00Z'))
    const seen: string[] = []
    const sleeper = async (name: string, ms: number): Promise<void> => {
      await clock.sleep(ms)
      seen.push(`${name}@${clock.monotonicMs()}`)
    }
    const all = Promise.all([sleeper('b', 20), sleeper('a', 10), sleeper('a2', 10), sleeper('c', 31)])
    expect(clock.sleeping).toBe(4)
    expect(clock.nextWakeInMs).toBe(10)
    await clock.advance(30)
    expect(seen).toEqual(['a@10', 'a2@10', 'b@20'])
    expect(clock.now()).toEqual(new Date('2026-01-01T00:00:00.030Z'))
    await clock.advance(1)
    await all
    expect(clock.nextWakeInMs).toBeNull()
  })

  test('a sleeper that sleeps again is woken again within one advance', async () => {
    const clock = new ManualClock()
    let rounds = 0
    const loop = async (): Promise<void> => {
      while (rounds < 5) {
        await clock.sleep(10)
        rounds += 1
      }
    }
    const looping = loop()
    await clock.advance(35)
    expect(rounds).toBe(3)
    await clock.advance(15)
    await looping
  })

  test('tells when somebody sleeps, and wakes at an abort', async () => {
    const clock = new ManualClock()
    const controller = new AbortController()
    const two = clock.untilSleeping(2)
    const slept = Promise.all([clock.sleep(5, controller.signal), clock.sleep(9, controller.signal)])
    await two
    await clock.untilSleeping()
    controller.abort()
    await slept
    expect(clock.sleeping).toBe(0)
    await clock.sleep(5, controller.signal)
  })
})
