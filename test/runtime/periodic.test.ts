import { expect, test } from 'vitest'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { jittered, type PeriodicTask, runPeriodically } from '../../src/runtime/periodic.ts'
import { seededRandom } from '../../src/runtime/random.ts'

function setup(overrides: Partial<PeriodicTask> = {}) {
  const clock = new ManualClock()
  const stop = new AbortController()
  const ranAt: number[] = []
  const errors: unknown[] = []
  const done = runPeriodically({
    everyMs: 100,
    jitter: 0,
    clock,
    random: () => 0.5,
    signal: stop.signal,
    run: () => {
      ranAt.push(clock.monotonicMs())
    },
    onError: (error) => errors.push(error),
    ...overrides,
  })
  return { clock, stop, ranAt, errors, done }
}

test('it runs after each pause until the signal aborts', async () => {
  const { clock, stop, ranAt, done } = setup()
  await clock.advance(350)
  expect(ranAt).toEqual([100, 200, 300])
  stop.abort()
  await done
  expect(clock.sleeping).toBe(0)
})

test('it can run at once', async () => {
  const { clock, stop, ranAt, done } = setup({ immediately: true })
  await clock.advance(150)
  expect(ranAt).toEqual([0, 100])
  stop.abort()
  await done
})

test('it outlives every failed run, and a reporter that fails too', async () => {
  let runs = 0
  const errors: unknown[] = []
  const { clock, stop, done } = setup({
    run: () => {
      runs += 1
      if (runs === 1) throw new Error('sync')
      return Promise.reject(new Error('async'))
    },
    onError: (error) => {
      errors.push(error)
      throw new Error('the reporter is broken')
    },
  })
  await clock.advance(300)
  stop.abort()
  await done
  expect(errors).toEqual([new Error('sync'), new Error('async'), new Error('async')])
})

test('it never spins, even with a pause of nothing', async () => {
  const { clock, stop, ranAt, done } = setup({ everyMs: 0 })
  await clock.advance(5)
  stop.abort()
  await done
  expect(ranAt).toEqual([1, 2, 3, 4, 5])
})

test('a stop during the pause ends it at once, a stop during a run after that run', async () => {
  const early = setup()
  early.stop.abort()
  await early.done
  expect(early.ranAt).toEqual([])

  let release: () => void = () => {}
  const late = setup({
    immediately: true,
    run: () =>
      new Promise((resolve) => {
        release = resolve
      }),
  })
  let ended = false
  const ending = late.done.then(() => {
    ended = true
  })
  late.stop.abort()
  await late.clock.advance(0)
  expect(ended).toBe(false)
  release()
  await ending
})

test('jitter spreads the pauses of a fleet by the share it is given', () => {
  const random = seededRandom(3)
  const pauses = Array.from({ length: 500 }, () => jittered(1_000, 0.2, random))
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(800)
  expect(Math.max(...pauses)).toBeLessThanOrEqual(1_200)
  expect(new Set(pauses.map(Math.round)).size).toBeGreaterThan(200)
})

test('the same seed gives the same chances, another seed others, all from 0 to 1', () => {
  const take = (seed: number): number[] => {
    const random = seededRandom(seed)
    return Array.from({ length: 1_000 }, random)
  }
  expect(take(1)).toEqual(take(1))
  expect(take(1)).not.toEqual(take(2))
  expect(take(9).every((value) => value >= 0 && value < 1)).toBe(true)
  const mean = take(5).reduce((sum, value) => sum + value, 0) / 1_000
  expect(Math.abs(mean - 0.5)).toBeLessThan(0.05)
})
