import { describe, expect, test } from 'vitest'
import type { Settlement } from '../../src/delivery/delivery.ts'
import { KeyBacklog } from '../../src/queue/key-backlog.ts'
import { heldAt, positionsOf } from './fakes.ts'
import { claim, takeAll } from './key-claims.ts'

const DONE: Settlement = { kind: 'done' }
const failure = { code: 'X', message: 'x' }
const RETRY: Settlement = { kind: 'retry', delayMs: 1_000, failure }
const DEAD: Settlement = { kind: 'dead', failure }

describe('a backlog by key', () => {
  test('starts one of each key, many keys at once', () => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    claim(backlog, 'a', 1, 3)
    claim(backlog, 'b', 2, 4)
    expect(backlog.ready).toBe(2)
    expect(takeAll(backlog)).toEqual([1, 2])
    expect(backlog.ready).toBe(0)
  })

  test('U4 starts the next of a key as soon as the one before has succeeded, before that is written down', () => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    claim(backlog, 'a', 1, 2)
    const first = backlog.next()
    expect(backlog.next()).toBeNull()
    if (first !== null) backlog.ended(first, DONE)
    expect(takeAll(backlog)).toEqual([2])
  })

  test('keeps position order within a key, also when a later claim brings an earlier event', () => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    claim(backlog, 'a', 5, 100)
    claim(backlog, 'a', 9)
    const order: number[] = []
    for (let next = backlog.next(); next !== null; next = backlog.next()) {
      order.push(Number(next.delivery.position))
      backlog.ended(next, DONE)
    }
    expect(order).toEqual([5, 9, 100])
  })

  test('gives back the rest of a key whose event failed, and leaves other keys alone', () => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    const { batch } = claim(backlog, 'a', 1, 3, 4)
    claim(backlog, 'b', 2)
    const first = backlog.next()
    const returned = backlog.ended(first ?? heldAt(0), RETRY)
    expect(positionsOf(returned.map(({ held }) => held))).toEqual([3, 4])
    expect(returned.every(({ settlement }) => settlement.kind === 'park')).toBe(true)
    expect(batch[0]).toBe(first)
    expect(takeAll(backlog)).toEqual([2])
  })

  test('parks what a claim brings that was sent before the failure was written down', () => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    const { batch } = claim(backlog, 'a', 1)
    backlog.next()
    const underWay = backlog.claimSent()
    backlog.ended(batch[0] ?? heldAt(0), RETRY)
    backlog.settled(batch[0] ?? heldAt(0), RETRY, false)
    const late = heldAt(2, { key: 'a' })
    expect(backlog.offer([late], underWay)).toEqual([{ held: late, settlement: { kind: 'park' } }])
  })

  test('parks what a claim brings while the failure is not written down', () => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    const { batch } = claim(backlog, 'a', 1)
    backlog.next()
    backlog.ended(batch[0] ?? heldAt(0), RETRY)
    const { returned } = claim(backlog, 'a', 2)
    expect(returned).toHaveLength(1)
  })

  test('goes on with what a claim brings that was sent after the failure was written down', () => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    const { batch } = claim(backlog, 'a', 1)
    backlog.next()
    const underWay = backlog.claimSent()
    backlog.ended(batch[0] ?? heldAt(0), RETRY)
    backlog.settled(batch[0] ?? heldAt(0), RETRY, false)
    backlog.offer([], underWay)
    const { returned } = claim(backlog, 'a', 1)
    expect(returned).toEqual([])
    expect(takeAll(backlog)).toEqual([1])
  })

  test('takes the failed event itself back from a claim that was under way, for that claim has seen it fail', () => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    const { batch } = claim(backlog, 'a', 1)
    backlog.next()
    backlog.ended(batch[0] ?? heldAt(0), RETRY)
    const underWay = backlog.claimSent()
    expect(
      backlog.offer([heldAt(1, { key: 'a', wasHeld: true }), heldAt(2, { key: 'a' })], underWay),
    ).toEqual([])
    expect(takeAll(backlog)).toEqual([1])
  })

  test('goes on at once when no claim was under way', () => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    const { batch } = claim(backlog, 'a', 1)
    backlog.next()
    backlog.ended(batch[0] ?? heldAt(0), RETRY)
    backlog.settled(batch[0] ?? heldAt(0), RETRY, false)
    expect(claim(backlog, 'a', 1).returned).toEqual([])
  })

  test("blocks a key at a dead letter, or goes on, as 'onDead' says", () => {
    const blocking = new KeyBacklog({ onDead: 'block' })
    claim(blocking, 'a', 1, 2)
    const returned = blocking.ended(blocking.next() ?? heldAt(0), DEAD)
    expect(positionsOf(returned.map(({ held }) => held))).toEqual([2])
    const continuing = new KeyBacklog({ onDead: 'continue' })
    claim(continuing, 'a', 1, 2)
    expect(continuing.ended(continuing.next() ?? heldAt(0), DEAD)).toEqual([])
    expect(takeAll(continuing)).toEqual([2])
  })

  test('runs an adopted suspect before what is waiting of its key', () => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    claim(backlog, 'a', 2, 3)
    const suspect = heldAt(1, { key: 'a', wasHeld: true, suspect: true })
    expect(backlog.adopt([suspect], backlog.claimSent())).toEqual([suspect])
    expect(backlog.next()).toBeNull()
    backlog.ended(suspect, DONE)
    expect(takeAll(backlog)).toEqual([2])
  })

  test('does not adopt a suspect while something earlier of its key is in hand or on its way back', () => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    const { batch } = claim(backlog, 'a', 1)
    const suspect = heldAt(2, { key: 'a', wasHeld: true, suspect: true })
    expect(backlog.adopt([suspect], backlog.claimSent())).toEqual([])
    backlog.next()
    expect(backlog.adopt([suspect], backlog.claimSent())).toEqual([])
    backlog.ended(batch[0] ?? heldAt(0), RETRY)
    expect(backlog.adopt([suspect], backlog.claimSent())).toEqual([])
  })

  test('judges each of several suspects by what was on its way back when they were claimed', () => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    const { batch } = claim(backlog, 'b', 2)
    backlog.next()
    const claimNumber = backlog.claimSent()
    // Given back and written while the claim is under way, which may not know of it.
    backlog.ended(batch[0] ?? heldAt(0), RETRY)
    backlog.settled(batch[0] ?? heldAt(0), RETRY, false)
    const [first, second] = [
      heldAt(1, { key: 'a', wasHeld: true, suspect: true }),
      heldAt(3, { key: 'b', wasHeld: true, suspect: true }),
    ]
    expect(backlog.adopt([first, second], claimNumber)).toEqual([first])
  })

  test('stops a key whose event turned out to be lost after it was done', () => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    const { batch } = claim(backlog, 'a', 1, 2, 3)
    backlog.next()
    backlog.ended(batch[0] ?? heldAt(0), DONE)
    backlog.next()
    const returned = backlog.settled(batch[0] ?? heldAt(0), DONE, true)
    expect(positionsOf(returned.map(({ held }) => held))).toEqual([3])
  })

  test('drops lost events that have not started, and parks what waits behind them', () => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    const { batch } = claim(backlog, 'a', 1, 2, 3, 4)
    claim(backlog, 'b', 5)
    for (const index of [1, 2]) (batch[index] ?? heldAt(0)).lost = true
    const { dropped, givenBack } = backlog.lose(
      batch.filter(({ lost }) => lost),
      true,
    )
    expect(positionsOf(dropped)).toEqual([2, 3])
    expect(positionsOf(givenBack.map(({ held }) => held))).toEqual([1, 4])
    expect(takeAll(backlog)).toEqual([5])
  })

  test('once closed gives everything back for anybody to take, also what a claim brings late', () => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    claim(backlog, 'a', 1, 2)
    const underWay = backlog.claimSent()
    backlog.next()
    const closed = backlog.close()
    const late = backlog.offer([heldAt(3, { key: 'a' })], underWay)
    expect(positionsOf([...closed, ...late].map(({ held }) => held))).toEqual([2, 3])
    expect([...closed, ...late].map(({ settlement }) => settlement)).toEqual([
      { kind: 'release', delayMs: 0 },
      { kind: 'release', delayMs: 0 },
    ])
    expect(backlog.next()).toBeNull()
  })
})

describe('an event that its handler completed in a transaction of its own', () => {
  const completed = (...positions: number[]) => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    claim(backlog, 'a', ...positions)
    const first = backlog.next() ?? heldAt(0)
    expect(backlog.ended(first, RETRY, true)).toEqual([])
    return { backlog, first }
  }

  test('keeps its key waiting until it is known that the transaction was committed', () => {
    const { backlog, first } = completed(1, 2)
    claim(backlog, 'a', 3)
    expect(backlog.ready).toBe(0)
    expect(backlog.settled(first, DONE, false)).toEqual([])
    expect(takeAll(backlog)).toEqual([2])
  })

  test.each([
    ['rolled back', RETRY, false],
    ['lost', RETRY, true],
  ] as const)('gives back the rest of its key when it was %s', (_, settlement, lost) => {
    const { backlog, first } = completed(1, 2, 3)
    expect(positionsOf(backlog.settled(first, settlement, lost).map(({ held }) => held))).toEqual([2, 3])
    expect(backlog.ready).toBe(0)
  })
})

describe('an event whose result the database refuses', () => {
  /** One that ended so and was refused, with another of its key in hand behind it. */
  const refused = (settlement: Settlement) => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    claim(backlog, 'a', 1, 2)
    const first = backlog.next() ?? heldAt(0)
    const returned = [...backlog.ended(first, settlement), ...backlog.unwritten(first, settlement)]
    expect(positionsOf(returned.map(({ held }) => held))).toEqual([2])
    return { backlog, first }
  }

  test.each([
    ['done', DONE],
    ['to be tried again', RETRY],
  ] as const)('keeps its key waiting if it was %s, whatever claims bring, until it comes again', (_, end) => {
    const { backlog } = refused(end)
    for (let claims = 0; claims < 3; claims += 1) {
      expect(claim(backlog, 'a', 2, 3).returned).toHaveLength(2)
      expect(claim(backlog, 'b', 4).returned).toEqual([])
    }
    expect(claim(backlog, 'a', 1).returned).toEqual([])
    expect(takeAll(backlog)).toEqual([4, 1])
  })

  test.each([
    ['is lost', true],
    ['is written after all', false],
  ] as const)('lets its key go on when it %s, for claims know of it then', (_, lost) => {
    const { backlog, first } = refused(DONE)
    expect(backlog.settled(first, DONE, lost)).toEqual([])
    expect(claim(backlog, 'a', 2).returned).toEqual([])
    expect(takeAll(backlog)).toEqual([2])
  })

  test('keeps its key waiting as before if its handler completed it', () => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    claim(backlog, 'a', 1, 2)
    const first = backlog.next() ?? heldAt(0)
    backlog.ended(first, RETRY, true)
    expect(backlog.unwritten(first, RETRY)).toEqual([])
    expect(backlog.ready).toBe(0)
    expect(positionsOf(backlog.settled(first, RETRY, true).map(({ held }) => held))).toEqual([2])
  })
})
