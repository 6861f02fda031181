import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Attempt } from '../../src/dispatch/attempt.ts'
import { RunningAttempts } from '../../src/dispatch/running-attempts.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { someDelivery } from './support.ts'

test('the list holds exactly what was added and not removed, in order, whatever comes and goes', () => {
  const steps = fc.array(fc.oneof(fc.constant('add' as const), fc.nat(50)), { maxLength: 80 })
  fc.assert(
    fc.property(steps, (sequence) => {
      const list = new RunningAttempts({ clock: new ManualClock(), timeoutMs: null, onTimeout: () => {} })
      const expected: Attempt[] = []
      for (const step of sequence) {
        if (step === 'add') {
          const attempt = new Attempt(someDelivery())
          list.add(attempt)
          expected.push(attempt)
        } else {
          const [gone] = expected.splice(step % Math.max(1, expected.length), 1)
          if (gone !== undefined) list.remove(gone)
        }
        const all = list.all()
        expect(all.length).toBe(expected.length)
        expect(all.every((attempt, index) => attempt === expected[index])).toBe(true)
        expect(list.count).toBe(expected.length)
      }
    }),
  )
})

test('a tick is a twentieth of the timeout, from 5 ms to a second', () => {
  for (const [timeoutMs, tickMs] of [
    [10, 5],
    [2_000, 100],
    [3_600_000, 1_000],
  ] as const) {
    const clock = new ManualClock()
    const list = new RunningAttempts({ clock, timeoutMs, onTimeout: () => {} })
    list.add(new Attempt(someDelivery()))
    expect(clock.nextWakeInMs).toBe(tickMs)
  }
})
