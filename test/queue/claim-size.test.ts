import { describe, expect, test } from 'vitest'
import { ClaimSize, MOST_CHARACTERS } from '../../src/queue/claim-size.ts'

const idle = { ready: 0, running: 0, inHand: 0, characters: 0 }

function setup(over: Partial<ConstructorParameters<typeof ClaimSize>[0]> = {}) {
  return new ClaimSize({ concurrency: 10, batchSize: 500, drain: true, leastInHand: 10, ...over })
}

describe('the size of the next claim', () => {
  test('starts at twice the concurrency and doubles while claims come back full', () => {
    const size = setup()
    const asked: number[] = []
    for (let round = 0; round < 7; round += 1) {
      const limit = size.next(idle)
      asked.push(limit)
      size.claimed(limit, limit, 0)
      size.worked(limit, 1)
    }
    expect(asked).toEqual([20, 40, 80, 160, 320, 500, 500])
  })

  test('stays where it is when a claim comes back short', () => {
    const size = setup()
    size.claimed(20, 3, 0)
    expect(size.next(idle)).toBe(20)
  })

  test('is no more than about a second of what the handlers get through', () => {
    const size = setup()
    for (let round = 0; round < 10; round += 1) {
      size.claimed(size.next(idle), 500, 0)
      size.worked(60, 1_000)
    }
    expect(size.next(idle)).toBeGreaterThanOrEqual(55)
    expect(size.next(idle)).toBeLessThanOrEqual(65)
  })

  test('with handlers that take long, is what can start at once: nothing is kept from other workers', () => {
    const size = setup()
    size.worked(0, 5_000)
    expect(size.next({ ready: 0, running: 0, inHand: 0, characters: 0 })).toBe(10)
    expect(size.next({ ready: 0, running: 7, inHand: 7, characters: 0 })).toBe(3)
    expect(size.next({ ready: 0, running: 10, inHand: 10, characters: 0 })).toBe(0)
  })

  test('grows again when the handlers do', () => {
    const size = setup()
    size.worked(0, 5_000)
    for (let round = 0; round < 12; round += 1) {
      size.worked(1_000, 10)
      size.claimed(size.next(idle), 500, 0)
    }
    expect(size.next(idle)).toBe(500)
  })

  test('is nothing while half a claim still waits, so that claims overlap with handlers', () => {
    const size = setup()
    expect(size.next({ ready: 10, running: 10, inHand: 20, characters: 0 })).toBe(0)
    expect(size.next({ ready: 9, running: 10, inHand: 19, characters: 0 })).toBe(20)
  })

  test('of handlers that are quicker than claims, is asked for a whole claim ahead', () => {
    const size = setup()
    size.worked(1_000, 10)
    expect(size.next({ ready: 20, running: 10, inHand: 30, characters: 0 })).toBe(20)
    expect(size.next({ ready: 21, running: 10, inHand: 31, characters: 0 })).toBe(0)
  })

  test('never makes for more than three batches in hand', () => {
    const size = setup({ batchSize: 20 })
    expect(size.next({ ready: 0, running: 10, inHand: 60, characters: 0 })).toBe(0)
    expect(size.next({ ready: 0, running: 10, inHand: 55, characters: 0 })).toBe(5)
  })

  test('of large events, is what there is room for, and the handlers are kept busy however large they are', () => {
    const size = setup()
    const each = MOST_CHARACTERS / 32
    size.claimed(20, 20, 20 * each)
    expect(size.next({ ready: 0, running: 10, inHand: 20, characters: 20 * each })).toBe(12)
    expect(size.next({ ready: 0, running: 10, inHand: 32, characters: 32 * each })).toBe(0)
    size.claimed(20, 1, MOST_CHARACTERS)
    expect(size.next({ ready: 0, running: 4, inHand: 4, characters: 4 * MOST_CHARACTERS })).toBe(6)
    expect(size.next({ ready: 0, running: 10, inHand: 10, characters: 10 * MOST_CHARACTERS })).toBe(0)
  })

  test('grows by and by when events are small again', () => {
    const size = setup()
    size.claimed(20, 20, MOST_CHARACTERS)
    const asked = Array.from({ length: 4 }, () => {
      const limit = size.next(idle)
      size.claimed(limit, limit, limit)
      size.worked(limit, 1)
      return limit
    })
    expect(asked).toEqual([20, 39, 79, 159])
  })

  test('is no more than a hundred before anything is known of the events', () => {
    const size = setup({ concurrency: 500, leastInHand: 1 })
    expect(size.next(idle)).toBe(100)
    size.claimed(100, 100, 1_000)
    expect(size.next(idle)).toBe(500)
    expect(setup({ concurrency: 200, leastInHand: 200 }).next(idle)).toBe(200)
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
