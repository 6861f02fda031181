import { describe, expect, test } from 'vitest'
import { SuspectQuarantine } from '../../src/queue/suspects.ts'
import { SoloGate } from '../../src/runtime/gate.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { deferred, turn } from './fakes.ts'

function setup(suspects: number) {
  const clock = new ManualClock()
  const gate = new SoloGate()
  const stop = new AbortController()
  const quarantine = new SuspectQuarantine(gate, clock)
  const ran: boolean[] = []
  const groups: number[] = []
  const runner = {
    runSuspects: async (most: number): Promise<boolean> => {
      if (ran.length === suspects) return false
      groups.push(Math.min(most, suspects - ran.length))
      for (let n = groups.at(-1) ?? 0; n > 0; n -= 1) ran.push(gate.tryEnter())
      return true
    },
  }
  return { clock, gate, stop, quarantine, runner, ran, groups }
}

describe('suspects', () => {
  test('run until none is left, with nothing beside them', async () => {
    const { quarantine, runner, stop, ran, gate } = setup(3)
    await quarantine.runAll(runner, stop.signal)
    expect(ran).toEqual([false, false, false])
    expect(gate.tryEnter()).toBe(true)
  })

  test('run in groups that grow while nothing happens: whoever takes the process down is alone soon', async () => {
    const { quarantine, runner, stop, groups } = setup(230)
    await quarantine.runAll(runner, stop.signal)
    expect(groups).toEqual([1, 2, 4, 8, 16, 32, 64, 64, 39])
  })

  test('of one subscription do not have the groups of another grow', async () => {
    const [busy, other] = [setup(10), setup(4)]
    await busy.quarantine.runAll(busy.runner, busy.stop.signal)
    await busy.quarantine.runAll(other.runner, busy.stop.signal)
    expect([busy.groups, other.groups]).toEqual([
      [1, 2, 4, 3],
      [1, 2, 1],
    ])
  })

  test('of a later crash begin with one alone again', async () => {
    const { quarantine, runner, stop, groups, ran } = setup(7)
    await quarantine.runAll(runner, stop.signal)
    ran.splice(0)
    await quarantine.runAll(runner, stop.signal)
    expect(groups).toEqual([1, 2, 4, 1, 2, 4])
  })

  test('do not grow in number when a claim fails', async () => {
    const { quarantine, runner, stop, groups } = setup(1)
    const failing = { runSuspects: () => Promise.reject(new Error('no connection')) }
    await expect(quarantine.runAll(failing, stop.signal)).rejects.toThrow('no connection')
    await quarantine.runAll(runner, stop.signal)
    expect(groups).toEqual([1])
  })

  test('wait for handlers that are running', async () => {
    const { quarantine, runner, stop, ran, gate } = setup(1)
    gate.tryEnter()
    const all = quarantine.runAll(runner, stop.signal)
    await turn()
    expect(ran).toEqual([])
    gate.leave()
    await all
    expect(ran).toHaveLength(1)
  })

  test('let others have their turn, though not after each: to be alone takes long where handlers do', async () => {
    const { clock, quarantine, stop, gate } = setup(0)
    const order: string[] = []
    const first = deferred()
    const suspects = ['suspect 1', 'suspect 2', 'suspect 3']
    const all = quarantine.runAll(
      {
        runSuspects: async () => {
          const name = suspects.shift()
          if (name === undefined) return false
          order.push(name)
          if (name === 'suspect 1') await first.promise
          if (name === 'suspect 2') await clock.advance(250)
          return true
        },
      },
      stop.signal,
    )
    await turn()
    void gate.enter().then(() => {
      order.push('handler')
      gate.leave()
    })
    first.resolve()
    await all
    expect(order).toEqual(['suspect 1', 'suspect 2', 'handler', 'suspect 3'])
  })

  test('do not hold everybody up for long behind a handler that takes its time, and are more patient next time', async () => {
    const { clock, quarantine, runner, stop, gate, ran } = setup(1)
    gate.tryEnter()
    const first = quarantine.runAll(runner, stop.signal)
    await clock.advance(5_000)
    await first
    expect(ran).toEqual([])
    expect(gate.tryEnter()).toBe(true)
    gate.leave()
    await clock.advance(40_000)
    const second = quarantine.runAll(runner, stop.signal)
    await clock.advance(9_000)
    gate.leave()
    await second
    expect(ran).toHaveLength(1)
    expect(clock.sleeping).toBe(0)
  })

  test('leave four fifths of the time to others while a handler runs for an hour', async () => {
    const { clock, quarantine, runner, stop, gate, ran } = setup(1)
    gate.tryEnter()
    let waited = 0
    for (let second = 0; second < 3_600; second += 1) {
      const asking = quarantine.runAll(runner, stop.signal)
      await turn()
      while (!gate.tryEnter()) {
        await clock.advance(1_000)
        second += 1
        waited += 1
      }
      gate.leave()
      await asking
      await clock.advance(1_000)
    }
    expect(waited).toBeGreaterThan(60)
    expect(waited).toBeLessThanOrEqual(3_600 / 5 + 5)
    gate.leave()
    await clock.advance(3_600_000)
    await quarantine.runAll(runner, stop.signal)
    expect(ran).toHaveLength(1)
  })

  test('end with the worker', async () => {
    const { clock, quarantine, runner, stop, gate, ran } = setup(1)
    gate.tryEnter()
    const all = quarantine.runAll(runner, stop.signal)
    stop.abort()
    await all
    expect(ran).toEqual([])
    expect(clock.sleeping).toBe(0)
  })
})
