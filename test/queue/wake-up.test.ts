import { describe, expect, test, vi } from 'vitest'
import { WakeUp } from '../../src/queue/wake-up.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { turn } from './fakes.ts'

function setup() {
  const clock = new ManualClock()
  const stop = new AbortController()
  return { clock, stop, wakeUp: new WakeUp(clock) }
}

describe('a wake-up', () => {
  test('ends the wait that is under way', async () => {
    const { stop, wakeUp } = setup()
    const waited = wakeUp.wait(1_000, stop.signal)
    wakeUp.wake()
    expect(await waited).toBe(true)
  })

  test('rung many times ends one wait only', async () => {
    const { clock, stop, wakeUp } = setup()
    for (let rings = 0; rings < 100; rings += 1) wakeUp.wake()
    expect(await wakeUp.wait(1_000, stop.signal)).toBe(true)
    let ended = false
    void wakeUp.wait(1_000, stop.signal).then(() => {
      ended = true
    })
    await turn()
    expect(ended).toBe(false)
    await clock.advance(1_000)
    expect(ended).toBe(true)
  })

  test('that is forgotten does not end the next wait', async () => {
    const { clock, stop, wakeUp } = setup()
    wakeUp.wake()
    wakeUp.forget()
    const waited = wakeUp.wait(50, stop.signal)
    await clock.advance(50)
    expect(await waited).toBe(false)
  })

  test('that ended a wait does not let the next one end when the first would have', async () => {
    const { clock, stop, wakeUp } = setup()
    const first = wakeUp.wait(1_000, stop.signal)
    await clock.advance(600)
    wakeUp.wake()
    await first
    let ended = false
    const second = wakeUp.wait(1_000, stop.signal).then((rung) => {
      ended = true
      return rung
    })
    await clock.advance(999)
    expect(ended).toBe(false)
    await clock.advance(1)
    expect(await second).toBe(false)
  })

  test('that ended a long wait does not keep a shorter one from ending in time', async () => {
    const { clock, stop, wakeUp } = setup()
    const long = wakeUp.wait(1_000, stop.signal)
    wakeUp.wake()
    await long
    let ended = false
    void wakeUp.wait(20, stop.signal).then(() => {
      ended = true
    })
    await clock.advance(20)
    expect(ended).toBe(true)
  })

  test('needs no timer for each of many waits that it ends', async () => {
    const { clock, stop, wakeUp } = setup()
    const timers = vi.spyOn(clock, 'sleep')
    for (let waits = 0; waits < 100; waits += 1) {
      const waited = wakeUp.wait(20, stop.signal)
      wakeUp.wake()
      expect(await waited).toBe(true)
    }
    expect(timers).toHaveBeenCalledTimes(1)
  })

  test('does not outlast the stop, and leaves no timer behind', async () => {
    const { clock, stop, wakeUp } = setup()
    const waited = wakeUp.wait(1_000, stop.signal)
    stop.abort()
    expect(await waited).toBe(false)
    expect(clock.sleeping).toBe(0)
  })
})
