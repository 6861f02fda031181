import { describe, expect, test } from 'vitest'
import type { Settlement } from '../../src/delivery/delivery.ts'
import { KeyBacklog } from '../../src/queue/key-backlog.ts'
import { heldAt, positionsOf } from './fakes.ts'

const DONE: Settlement = { kind: 'done' }
const failure = { code: 'X', message: 'x' }
const RETRY: Settlement = { kind: 'retry', delayMs: 1_000, failure }
const DEAD: Settlement = { kind: 'dead', failure }

/** Claims the given positions of one key, as one claim that was sent and has returned. */
function claim(backlog: KeyBacklog, key: string, ...positions: number[]) {
  const number = backlog.claimSent()
  const batch = positions.map((position) => heldAt(position, { key }))
  return { batch, returned: backlog.offer(batch, number) }
}

function takeAll(backlog: KeyBacklog): number[] {
  const taken: number[] = []
  for (let next = backlog.next(); next !== null; next = backlog.next()) taken.push(...positionsOf([next]))
  return taken
}

describe('a backlog by key', () => {
  test('starts one of each key, many keys at once', () => {
    const backlog = new KeyBacklog('block')
    claim(backlog, 'a', 1, 3)
    claim(backlog, 'b', 2, 4)
    expect(backlog.ready).toBe(2)
    expect(takeAll(backlog)).toEqual([1, 2])
    expect(backlog.ready).toBe(0)
  })

  test('U4 starts the next of a key as soon as the one before has succeeded, before that is written down', () => {
    const backlog = new KeyBacklog('block')
    claim(backlog, 'a', 1, 2)
    const first = backlog.next()
    expect(backlog.next()).toBeNull()
    if (first !== null) backlog.ended(first, DONE)
    expect(takeAll(backlog)).toEqual([2])
  })

  test('keeps position order within a key, also when a later claim brings an earlier event', () => {
    const backlog = new KeyBacklog('block')
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
    const backlog = new KeyBacklog('block')
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
    const backlog = new KeyBacklog('block')
    const { batch } = claim(backlog, 'a', 1)
    backlog.next()
    const underWay = backlog.claimSent()
    backlog.ended(batch[0] ?? heldAt(0), RETRY)
    backlog.settled(batch[0] ?? heldAt(0), RETRY, false)
    const late = heldAt(2, { key: 'a' })
    expect(backlog.offer([late], underWay)).toEqual([{ held: late, settlement: { kind: 'park' } }])
  })

  test('parks what a claim brings while the failure is not written down', () => {
    const backlog = new KeyBacklog('block')
    const { batch } = claim(backlog, 'a', 1)
    backlog.next()
    backlog.ended(batch[0] ?? heldAt(0), RETRY)
    const { returned } = claim(backlog, 'a', 2)
    expect(returned).toHaveLength(1)
  })

  test('goes on with what a claim brings that was sent after the failure was written down', () => {
    const backlog = new KeyBacklog('block')
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
    const backlog = new KeyBacklog('block')
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
    const backlog = new KeyBacklog('block')
    const { batch } = claim(backlog, 'a', 1)
    backlog.next()
    backlog.ended(batch[0] ?? heldAt(0), RETRY)
    backlog.settled(batch[0] ?? heldAt(0), RETRY, false)
    expect(claim(backlog, 'a', 1).returned).toEqual([])
  })

  test("blocks a key at a dead letter, or goes on, as 'onDead' says", () => {
    const blocking = new KeyBacklog('block')
    claim(blocking, 'a', 1, 2)
    const returned = blocking.ended(blocking.next() ?? heldAt(0), DEAD)
    expect(positionsOf(returned.map(({ held }) => held))).toEqual([2])
    const continuing = new KeyBacklog('continue')
    claim(continuing, 'a', 1, 2)
    expect(continuing.ended(continuing.next() ?? heldAt(0), DEAD)).toEqual([])
    expect(takeAll(continuing)).toEqual([2])
  })

  test('runs an adopted suspect before what is waiting of its key', () => {
    const backlog = new KeyBacklog('block')
    claim(backlog, 'a', 2, 3)
    const suspect = heldAt(1, { key: 'a', wasHeld: true, suspect: true })
    expect(backlog.adopt(suspect, backlog.claimSent())).toBe(true)
    expect(backlog.next()).toBeNull()
    backlog.ended(suspect, DONE)
    expect(takeAll(backlog)).toEqual([2])
  })

  test('does not adopt a suspect while something earlier of its key is in hand or on its way back', () => {
    const backlog = new KeyBacklog('block')
    const { batch } = claim(backlog, 'a', 1)
    const suspect = heldAt(2, { key: 'a', wasHeld: true, suspect: true })
    expect(backlog.adopt(suspect, backlog.claimSent())).toBe(false)
    backlog.next()
    expect(backlog.adopt(suspect, backlog.claimSent())).toBe(false)
    backlog.ended(batch[0] ?? heldAt(0), RETRY)
    expect(backlog.adopt(suspect, backlog.claimSent())).toBe(false)
  })

  test('stops a key whose event turned out to be lost after it was done', () => {
    const backlog = new KeyBacklog('block')
    const { batch } = claim(backlog, 'a', 1, 2, 3)
    backlog.next()
    backlog.ended(batch[0] ?? heldAt(0), DONE)
    backlog.next()
    const returned = backlog.settled(batch[0] ?? heldAt(0), DONE, true)
    expect(positionsOf(returned.map(({ held }) => held))).toEqual([3])
  })

  test('drops lost events that have not started, and parks what waits behind them', () => {
    const backlog = new KeyBacklog('block')
    const { batch } = claim(backlog, 'a', 1, 2, 3, 4)
    claim(backlog, 'b', 5)
    for (const index of [1, 2]) (batch[index] ?? heldAt(0)).lost = true
    const { dropped, givenBack } = backlog.lose(batch.filter(({ lost }) => lost))
    expect(positionsOf(dropped)).toEqual([2, 3])
    expect(positionsOf(givenBack.map(({ held }) => held))).toEqual([1, 4])
    expect(takeAll(backlog)).toEqual([5])
  })

  test('once closed gives everything back for anybody to take, also what a claim brings late', () => {
    const backlog = new KeyBacklog('block')
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
