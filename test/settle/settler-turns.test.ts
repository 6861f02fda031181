import { describe, expect, test } from 'vitest'
import type { Settled } from '../../src/delivery/delivery.ts'
import { turn } from '../queue/fakes.ts'
import { setup, WRITTEN } from './settler-scene.ts'

describe('results of an ordering key', () => {
  /** Answers the last write: these are locked, those are lost, the rest is written. */
  async function answer(
    { writes }: Pick<ReturnType<typeof setup>, 'writes'>,
    { busy = [], lost = [] }: { readonly busy?: readonly number[]; readonly lost?: readonly number[] },
  ): Promise<void> {
    await turn()
    const { batch = [], answer: last } = writes.at(-1) ?? {}
    const among = (positions: readonly number[]): readonly Settled[] =>
      batch.filter(({ delivery }) => positions.includes(Number(delivery.position)))
    last?.resolve({ ...WRITTEN, busy: among(busy), lost: among(lost).map(({ delivery }) => delivery) })
    await turn()
  }

  /** Of key a the first of three is locked and the second was written with it; the third comes later, as does one of b. */
  async function locked() {
    const s = setup()
    s.addOf('a', 1, 2)
    s.settler.hurry()
    await answer(s, { busy: [1, 2] })
    s.addOf('a', 3)
    s.addOf('b', 4)
    s.settler.hurry()
    await answer(s, {})
    expect(s.written.flatMap(({ positions }) => positions)).toEqual([4])
    expect(s.waiting).toEqual([1, 2, 3])
    await s.clock.advance(10)
    expect(s.writes.at(-1)?.positions).toEqual([1])
    return s
  }

  test('are written after one that was locked, in order, and those of other keys meanwhile', async () => {
    const s = await locked()
    await answer(s, {})
    await answer(s, {})
    expect(s.written.flatMap(({ positions }) => positions)).toEqual([4, 1, 2, 3])
  })

  test('are not written when the one before them is lost', async () => {
    const s = await locked()
    s.addOf('a', 5)
    await answer(s, { lost: [1] })
    await s.settler.flush()
    expect(s.outrun).toEqual([2, 3, 5])
    expect(s.written.flatMap(({ positions }) => positions)).toEqual([4, 1])
  })

  test('are given up with the one before them, and so are later ones', async () => {
    const s = await locked()
    s.giveUp.abort()
    await answer(s, { busy: [1] })
    s.addOf('a', 5)
    await s.settler.finish()
    expect(s.givenUp).toEqual([1, 2, 3, 5])
    expect(s.written.flatMap(({ positions }) => positions)).toEqual([4])
  })

  test('are not written when one before them is found to be lost in the same batch, and others of it are', async () => {
    const s = setup()
    s.addOf('a', 1, 2)
    s.addOf('b', 3)
    s.settler.hurry()
    await answer(s, { lost: [1], busy: [2, 3] })
    await s.settler.flush()
    expect(s.outrun).toEqual([2])
    expect(s.waiting).toEqual([3])
    await s.clock.advance(10)
    expect(s.writes.map(({ positions }) => positions)).toEqual([[1, 2, 3], [3]])
  })

  test('are not written when one before them is found to be lost after their batch was refused', async () => {
    const s = setup()
    s.addOf('a', 1, 2)
    s.addOf('b', 3, 4)
    s.settler.hurry()
    await turn()
    s.writes.at(-1)?.answer.reject(Object.assign(new Error('refused'), { code: '23514' }))
    await turn()
    s.writes.at(-1)?.answer.reject(Object.assign(new Error('refused'), { code: '23514' }))
    await answer(s, { lost: [1] })
    await answer(s, {})
    expect(s.outrun).toEqual([2])
    expect(s.writes.map(({ positions }) => positions)).toEqual([[1, 2, 3, 4], [1, 2], [1], [3, 4]])
  })

  test('are not written when one before them is lost that waited itself, whatever they are written with', async () => {
    const s = setup({ together: 1 })
    s.addOf('a', 1, 2, 3)
    s.settler.hurry()
    await answer(s, { busy: [1] })
    await s.clock.advance(10)
    await answer(s, {})
    expect(s.writes.at(-1)?.positions).toEqual([2])
    await answer(s, { lost: [2] })
    await s.settler.flush()
    expect(s.outrun).toEqual([3])
    expect(s.writes.at(-1)?.positions).toEqual([2])
  })
})
