import { describe, expect, test } from 'vitest'
import { ClaimSize } from '../../src/queue/claim-size.ts'

const idle = { ready: 0, running: 0, inHand: 0 }

function setup(over: Partial<ConstructorParameters<typeof ClaimSize>[0]> = {}) {
  return new ClaimSize({ concurrency: 10, batchSize: 500, drain: true, ...over })
}

describe('the size of the next claim', () => {
  test('starts at twice the concurrency and doubles while claims come back full', () => {
    const size = setup()
    const asked: number[] = []
    for (let round = 0; round < 7; round += 1) {
      const limit = size.next(idle)
      asked.push(limit)
      size.claimed(limit, limit)
      size.worked(limit, 1)
    }
    expect(asked).toEqual([20, 40, 80, 160, 320, 500, 500])
  })

  test('stays where it is when a claim comes back short', () => {
    const size = setup()
    size.claimed(20, 3)
    expect(size.next(idle)).toBe(20)
  })

  test('is no more than about a second of what the handlers get through', () => {
    const size = setup()
    for (let round = 0; round < 10; round += 1) {
      size.claimed(size.next(idle), 500)
      size.worked(60, 1_000)
    }
    expect(size.next(idle)).toBeGreaterThanOrEqual(55)
    expect(size.next(idle)).toBeLessThanOrEqual(65)
  })

  test('with handlers that take long, is what can start at once: nothing is kept from other workers', () => {
    const size = setup()
    size.worked(0, 5_000)
    expect(size.next({ ready: 0, running: 0, inHand: 0 })).toBe(10)
    expect(size.next({ ready: 0, running: 7, inHand: 7 })).toBe(3)
    expect(size.next({ ready: 0, running: 10, inHand: 10 })).toBe(0)
  })

  test('grows again when the handlers do', () => {
    const size = setup()
    size.worked(0, 5_000)
    for (let round = 0; round < 12; round += 1) {
      size.worked(1_000, 10)
      size.claimed(size.next(idle), 500)
    }
    expect(size.next(idle)).toBe(500)
  })

  test('is nothing while half a claim still waits, so that claims overlap with handlers', () => {
    const size = setup()
    expect(size.next({ ready: 10, running: 10, inHand: 20 })).toBe(0)
    expect(size.next({ ready: 9, running: 10, inHand: 19 })).toBe(20)
  })

  test('of handlers that are quicker than claims, is asked for a whole claim ahead', () => {
    const size = setup()
    size.worked(1_000, 10)
    expect(size.next({ ready: 20, running: 10, inHand: 30 })).toBe(20)
    expect(size.next({ ready: 21, running: 10, inHand: 31 })).toBe(0)
  })

  test('never makes for more than three batches in hand', () => {
    const size = setup({ batchSize: 20 })
    expect(size.next({ ready: 0, running: 10, inHand: 60 })).toBe(0)
    expect(size.next({ ready: 0, running: 10, inHand: 55 })).toBe(5)
  })

  test('D1 is the whole batch where one claim per period was asked for', () => {
    const size = setup({ batchSize: 50, drain: false })
    expect(size.next(idle)).toBe(50)
    size.worked(0, 60_000)
    expect(size.next(idle)).toBe(50)
  })

  test('is at least one for a concurrency above the batch size', () => {
    expect(setup({ concurrency: 100, batchSize: 1 }).next(idle)).toBe(1)
  })
})
