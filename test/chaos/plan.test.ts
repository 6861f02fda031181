import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { seededRandom } from '../../src/runtime/random.ts'
import { draw } from './drafts.ts'
import { drawPlan, FAULT_NAMES, type PlanOptions, planText } from './plan.ts'

const options: PlanOptions = {
  seed: 7,
  durationMs: 120_000,
  leaseMs: 3_000,
  workers: 4,
  publishers: 3,
  faults: FAULT_NAMES,
}

test('publishers roll back, use every isolation and hold transactions open, by the library and by SQL', () => {
  const random = seededRandom(7)
  const drawn = Array.from({ length: 200 }, (_, n) => draw(random, 'p', n))
  expect(new Set(drawn.map(({ style }) => style)).size).toBe(4)
  expect(new Set(drawn.map(({ isolation }) => isolation))).toEqual(
    new Set([null, 'repeatable read', 'serializable']),
  )
  expect(drawn.some(({ waitMs }) => waitMs > 1_000)).toBe(true)
})

describe('the plan of a chaos run', () => {
  test('is the same for the same seed, and another for another', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000_000 }), (seed) => {
        expect(drawPlan({ ...options, seed })).toEqual(drawPlan({ ...options, seed }))
        expect(drawPlan({ ...options, seed })).not.toEqual(drawPlan({ ...options, seed: seed + 1 }))
      }),
    )
  })

  test('has everything once before it has anything twice, and ends in time', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000_000 }), (seed) => {
        const plan = drawPlan({ ...options, seed })
        const first = plan.slice(0, FAULT_NAMES.length).map(({ name }) => name)
        expect(first.toSorted()).toEqual([...FAULT_NAMES].toSorted())
        expect(plan.every(({ atMs }) => atMs < options.durationMs)).toBe(true)
      }),
    )
  })

  test('never hits a worker that is being hit', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000_000 }), (seed) => {
        const faults = ['kill', 'stop', 'silence', 'skewClock'] as const
        const plan = drawPlan({ ...options, seed, faults })
        const overlapping = plan.filter((step, n) =>
          plan
            .slice(0, n)
            .some((other) => other.target === step.target && other.atMs + other.lastsMs > step.atMs),
        )
        expect(overlapping).toEqual([])
      }),
    )
  })

  test('says what will happen', () => {
    expect(planText(3, [{ id: '1-stop', atMs: 1_500, name: 'stop', target: 2, lastsMs: 4_000 }])).toBe(
      'seed 3, 1 faults\n      1.5 s  stop 2 for 4.0 s',
    )
  })
})
