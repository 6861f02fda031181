import { describe, expect, test } from 'vitest'
import { ClaimWindow } from '../../../src/store/postgres/claim-window.ts'
import { hazard, publishMany } from '../../hazards/support.ts'
import { claim, claimLanes, join, takeLanes } from '../contract/helpers.ts'

const LIMIT = 10

/** So many positions, each so far from the one before. */
const positions = (count: number, apart = 1): readonly string[] =>
  Array.from({ length: count }, (_, index) => String(1 + index * apart))

describe('the window of claims', () => {
  test('is shut until a claim came back full, and again when one did not', () => {
    const window = new ClaimWindow()
    expect(window.next(LIMIT)).toBe(0)
    window.taken(positions(LIMIT), LIMIT, 0)
    expect(window.next(LIMIT)).toBe(LIMIT)
    window.taken(positions(LIMIT - 1), LIMIT, LIMIT)
    expect(window.next(LIMIT)).toBe(0)
  })

  test('is as wide as a claim where all positions are of these lanes', () => {
    const window = new ClaimWindow()
    window.taken(positions(LIMIT), LIMIT, 0)
    for (let round = 0; round < 5; round += 1) window.taken(positions(LIMIT), LIMIT, window.next(LIMIT))
    expect(window.next(LIMIT)).toBe(LIMIT)
  })

  test('becomes wider while claims reach beyond it, and narrower when they do not', () => {
    const window = new ClaimWindow()
    window.taken(positions(LIMIT, 8), LIMIT, 0)
    for (let round = 0; round < 3; round += 1) window.taken(positions(LIMIT, 8), LIMIT, window.next(LIMIT))
    expect(window.next(LIMIT)).toBe(LIMIT * 8)
    window.taken(positions(LIMIT, 8), LIMIT, window.next(LIMIT))
    expect(window.next(LIMIT)).toBe(LIMIT * 8 * 0.9)
  })

  test('has an end, however far positions are apart', () => {
    const window = new ClaimWindow()
    window.taken(positions(LIMIT), LIMIT, 0)
    const far = [...positions(LIMIT - 1), String(2n ** 62n)]
    for (let round = 0; round < 50; round += 1) window.taken(far, LIMIT, window.next(LIMIT))
    expect(window.next(LIMIT)).toBe(LIMIT * 1_000)
  })
})

describe('claims of several lanes with a backlog', () => {
  const EVENTS = 200
  const TAKEN_AT_ONCE = 20

  test('take what stands side by side, of each lane from its first, and leave nothing', async () => {
    await using h = await hazard()
    const { store } = h.worker('w')
    const sub = await join(store, { orderBy: 'aggregate', lanes: 4 })
    const lanes = await takeLanes(store, sub, 'w')
    await publishMany(h, EVENTS, 'n % 50')
    const claims: (readonly { readonly lane: number; readonly position: string }[])[] = []
    do claims.push(await claimLanes(store, sub, 'w', lanes, TAKEN_AT_ONCE))
    while (claims.at(-1)?.length !== 0)
    const taken = claims.flat()
    expect(taken).toHaveLength(EVENTS)
    for (const { lane } of lanes) {
      const ofLane = taken.filter((one) => one.lane === lane).map(({ position }) => Number(position))
      expect(ofLane).toEqual(ofLane.toSorted((a, b) => a - b))
    }
    const lanesOf = (claimed: (typeof claims)[number]): number =>
      new Set(claimed.map(({ lane }) => lane)).size
    expect(claims.slice(0, 2).map(lanesOf)).toEqual([1, expect.toSatisfy((count: number) => count > 1)])
  })
})

describe('a claimed delivery that lets go of its event', () => {
  test('reads an equal one when it is asked again', async () => {
    await using h = await hazard()
    const { store } = h.worker('w')
    const sub = await join(store)
    await publishMany(h, 1, `'a'`)
    const [delivery] = await claim(store, sub, 'w')
    const before = delivery?.event
    delivery?.letGoOfEvent?.()
    expect(delivery?.event).not.toBe(before)
    expect(delivery?.event).toEqual(before)
  })
})
