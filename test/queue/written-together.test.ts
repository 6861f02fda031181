import { describe, expect, test } from 'vitest'
import type { Settlement } from '../../src/delivery/delivery.ts'
import type { Ended } from '../../src/queue/report.ts'
import { writtenTogether } from '../../src/queue/written-together.ts'
import type { LaneDelivery } from '../../src/store/queue-store.ts'
import { heldAt } from './fakes.ts'

const DONE: Settlement = { kind: 'done' }
const DEAD: Settlement = { kind: 'dead', failure: { code: 'X', message: 'x' } }

/** How many of these are written in one batch. */
function together(...results: readonly (readonly [key: string, settlement: Settlement])[]): number {
  return writtenTogether(
    results.map(([key, settlement], index): Ended<LaneDelivery> => {
      const held = heldAt(index + 1, { key })
      return { delivery: held.delivery, held, settlement, durationMs: 1 }
    }),
  )
}

describe('results of a subscription whose dead events let their keys go on', () => {
  test('are written together where none of them died, or they are of different keys', () => {
    expect(together(['a', DONE], ['a', DONE], ['b', DEAD], ['c', DEAD])).toBe(4)
  })

  test('are written apart from an earlier one of their key that died, and if they died from any earlier one', () => {
    expect(together(['a', DEAD], ['b', DONE], ['a', DONE])).toBe(2)
    expect(together(['a', DONE], ['b', DONE], ['a', DEAD])).toBe(2)
    expect(together(['a', DEAD], ['b', DONE], ['a', DEAD])).toBe(2)
  })
})
