import { describe, expect, test } from 'vitest'
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

  test('does not outlast the stop, and leaves no timer behind', async () => {
    const { clock, stop, wakeUp } = setup()
    const waited = wakeUp.wait(1_000, stop.signal)
    stop.abort()
    expect(await waited).toBe(false)
    expect(clock.sleeping).toBe(0)
  })
})
