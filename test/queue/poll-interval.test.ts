import { describe, expect, test } from 'vitest'
import { nextPollMs } from '../../src/queue/poll-interval.ts'
import { noJitter } from './fakes.ts'

const options = { pollMinMs: 20, pollMs: 1_000, drain: true }

describe('the pause before the next claim', () => {
  test('is none while there is work', () => {
    expect(nextPollMs(0, options, noJitter)).toBe(0)
  })

  test('doubles with every empty claim up to the longest', () => {
    const pauses = [1, 2, 3, 4, 5, 6, 7, 8].map((empty) => nextPollMs(empty, options, noJitter))
    expect(pauses).toEqual([20, 40, 80, 160, 320, 640, 1_000, 1_000])
  })

  test('stays finite however long nothing comes', () => {
    expect(nextPollMs(1_000_000, options, noJitter)).toBe(1_000)
  })

  test('is spread, so that a fleet does not poll together', () => {
    const pauses = [0, 0.25, 0.75, 0.999].map((chance) => nextPollMs(9, options, () => chance))
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(800)
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1_200)
    expect(new Set(pauses).size).toBe(4)
  })

  test('D1 is fixed where one claim per period was asked for, found something or not', () => {
    const every5s = { pollMinMs: 20, pollMs: 5_000, drain: false }
    expect([0, 1, 7].map((empty) => nextPollMs(empty, every5s, () => 0.9))).toEqual([5_000, 5_000, 5_000])
  })
})
