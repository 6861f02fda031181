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
  const runner = {
    runSuspect: async (): Promise<boolean> => {
      if (ran.length === suspects) return false
      ran.push(gate.tryEnter())
      return true
    },
  }
  return { clock, gate, stop, quarantine, runner, ran }
}

describe('suspects', () => {
  test('run one after the other until none is left, with nothing beside them', async () => {
    const { quarantine, runner, stop, ran, gate } = setup(3)
    await quarantine.runAll(runner, stop.signal)
    expect(ran).toEqual([false, false, false])
    expect(gate.tryEnter()).toBe(true)
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

  test('let others have their turn in between', async () => {
    const { quarantine, stop, gate } = setup(0)
    const order: string[] = []
    const first = deferred()
    const suspects = ['suspect 1', 'suspect 2']
    const all = quarantine.runAll(
      {
        runSuspect: async () => {
          const name = suspects.shift()
          if (name === undefined) return false
          order.push(name)
          if (name === 'suspect 1') await first.promise
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
    expect(order).toEqual(['suspect 1', 'handler', 'suspect 2'])
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
    const second = quarantine.runAll(runner, stop.signal)
    await clock.advance(9_000)
    gate.leave()
    await second
    expect(ran).toHaveLength(1)
    expect(clock.sleeping).toBe(0)
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
