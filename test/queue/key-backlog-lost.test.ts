import { describe, expect, test } from 'vitest'
import { RELEASE_NOW } from '../../src/delivery/settlements.ts'
import { KeyBacklog } from '../../src/queue/key-backlog.ts'
import { heldAt, positionsOf } from './fakes.ts'
import { claim, takeAll } from './key-claims.ts'

describe('two of a key that are lost before they started', () => {
  const losing = (known: boolean) => {
    const backlog = new KeyBacklog({ onDead: 'block' })
    const { batch } = claim(backlog, 'a', 1, 2)
    for (const held of batch) held.lost = true
    expect(backlog.lose(batch, known)).toMatchObject({ dropped: batch, givenBack: [] })
    return { backlog, batch }
  }
  const broughtBack = ({ returned }: ReturnType<typeof claim>): readonly number[] =>
    positionsOf(returned.map(({ held }) => held))

  test('because the database says so, are known to the next claim: what it brings may run', () => {
    const { backlog } = losing(true)
    expect(broughtBack(claim(backlog, 'a', 3))).toEqual([])
    expect(takeAll(backlog)).toEqual([3])
  })

  test('by our own clock, are passed by nothing until the database has been told of both', () => {
    const { backlog, batch } = losing(false)
    expect(broughtBack(claim(backlog, 'a', 3)), 'it takes them for in hand').toEqual([3])
    backlog.settled(batch[0] ?? heldAt(0), RELEASE_NOW, false)
    expect(broughtBack(claim(backlog, 'a', 1, 4)), 'the second is still in hand').toEqual([4])
    backlog.settled(batch[1] ?? heldAt(0), RELEASE_NOW, false)
    expect(takeAll(backlog)).toEqual([1])
  })
})
