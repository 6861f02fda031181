import { expect, test } from 'vitest'
import { leaseClock, systemClock } from '../../src/runtime/clock.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { countingSuspension } from '../../src/runtime/suspension.ts'

function machine() {
  const at = { monotonic: 1_000, wall: 1_790_000_000_000, uptime: 500_000, uptimeReads: 0 }
  const now = countingSuspension({
    monotonicMs: () => at.monotonic,
    wallMs: () => at.wall,
    uptimeMs: () => {
      at.uptimeReads += 1
      return at.uptime
    },
  })
  const pass = (ms: number): void => {
    at.monotonic += ms
    at.wall += ms
    at.uptime += ms
  }
  /** The machine is suspended: one clock stands still, and only a moment passes after it wakes. */
  const suspend = (ms: number): void => {
    at.wall += ms
    at.uptime += ms
    pass(1)
  }
  return { at, now, pass, suspend }
}

test('the time in which a machine was suspended counts, from the first look after it wakes', () => {
  const { now, pass, suspend } = machine()
  pass(50)
  expect(now()).toBe(1_050)
  suspend(60_000)
  expect(now()).toBe(61_051)
  pass(10)
  expect(now()).toBe(61_061)
  suspend(5_000)
  expect(now()).toBe(66_062)
})

test('a wall clock that is set, forward or back, is no time', () => {
  const { at, now, pass } = machine()
  at.wall += 3_600_000
  pass(20)
  expect(now()).toBe(1_020)
  at.wall -= 7_200_000
  pass(20)
  expect(now()).toBe(1_040)
})

test('a suspension is noticed also where the wall clock was set before, and never taken back', () => {
  const { at, now, pass, suspend } = machine()
  at.wall -= 3_600_000
  pass(5)
  now()
  suspend(30_000)
  expect(now()).toBe(31_006)
  at.wall -= 30_000
  pass(5)
  expect(now()).toBe(31_011)
})

test('the uptime is read only when the wall clock has jumped', () => {
  const { at, now, pass } = machine()
  for (let look = 0; look < 1_000; look += 1) {
    pass(7)
    now()
  }
  expect(at.uptimeReads).toBe(1)
})

test('leases go by it where the clock has it: the machine’s own has, one of tests need not', () => {
  const clock = new ManualClock()
  expect(leaseClock(clock)).toBe(clock)
  const before = systemClock.monotonicMs()
  expect(leaseClock(systemClock).monotonicMs()).toBeGreaterThanOrEqual(before)
})
