import { describe, expect, test } from 'vitest'
import type { Settled } from '../../src/delivery/delivery.ts'
import { turn } from '../queue/fakes.ts'
import { setup, WRITTEN } from './settler-scene.ts'

describe('a settler', () => {
  test('waits a few milliseconds for company', async () => {
    const { clock, writes, add } = setup()
    add(1)
    await clock.advance(4)
    add(2)
    expect(writes).toEqual([])
    await clock.advance(1)
    expect(writes.map(({ positions }) => positions)).toEqual([[1, 2]])
  })

  test('writes a full batch at once', async () => {
    const { writes, add } = setup({ batchSize: 2 })
    add(1, 2)
    await turn()
    expect(writes.map(({ positions }) => positions)).toEqual([[1, 2]])
  })

  test('writes at once when told that nothing more is coming', async () => {
    const { writes, settler, add } = setup()
    add(1)
    settler.hurry()
    await turn()
    expect(writes.map(({ positions }) => positions)).toEqual([[1]])
  })

  test('writes one batch after the other, in order, and collects meanwhile', async () => {
    const { writes, settler, add } = setup({ batchSize: 2 })
    add(1, 2)
    await turn()
    add(3, 4, 5, 6, 7)
    settler.hurry()
    expect(writes).toHaveLength(1)
    writes[0]?.answer.resolve(WRITTEN)
    await turn()
    expect(writes.map(({ positions }) => positions)).toEqual([
      [1, 2],
      [3, 4, 5, 6],
    ])
  })

  test('W12 offers a batch again until it is written, and says that it did', async () => {
    const { clock, writes, written, outages, settler, add } = setup()
    add(1)
    settler.hurry()
    await turn()
    for (let failures = 0; failures < 3; failures += 1) {
      writes.at(-1)?.answer.reject(new Error('connection cut'))
      await clock.advance(1_000)
    }
    writes.at(-1)?.answer.resolve(WRITTEN)
    await turn()
    expect(writes).toHaveLength(4)
    expect(written).toEqual([{ positions: [1], again: true }])
    expect(outages).toHaveLength(1)
  })

  /** A database that refuses some rows and takes all others. */
  async function answerAll(
    { writes }: Pick<ReturnType<typeof setup>, 'writes'>,
    refuses: (position: number) => boolean,
    from = 0,
  ): Promise<void> {
    for (let index = from; index < writes.length && index < 50; index += 1) {
      const { positions, answer } = writes[index] ?? {}
      if (positions?.some(refuses)) answer?.reject(Object.assign(new Error('bad'), { code: '22P05' }))
      else answer?.resolve(WRITTEN)
      await turn()
    }
  }

  test('finds the one row that the database refuses and writes all others', async () => {
    const s = setup()
    s.add(1, 2, 3, 4)
    s.settler.hurry()
    await turn()
    await answerAll(s, (position) => position === 3)
    expect(s.written.flatMap(({ positions }) => positions)).toEqual([1, 2, 4])
    expect(s.refused).toMatchObject([
      { position: '3', error: { code: 'STORE_REFUSED', message: expect.stringContaining('bad') } },
    ])
    expect(s.givenUp).toEqual([])
  })

  test('offers what was refused again, apart from the others, and tells of it once', async () => {
    const s = setup()
    s.add(1, 2)
    s.settler.hurry()
    await turn()
    await answerAll(s, (position) => position === 1)
    for (let round = 0; round < 3; round += 1) {
      const from = s.writes.length
      s.add(10 + round)
      await s.clock.advance(1_000)
      await answerAll(s, (position) => position === 1, from)
      expect(s.writes.slice(from).map(({ positions }) => positions)).toContainEqual([1])
    }
    expect(s.refused).toHaveLength(1)
    const from = s.writes.length
    await s.clock.advance(1_000)
    await answerAll(s, () => false, from)
    expect(s.written.flatMap(({ positions }) => positions)).toEqual([2, 10, 11, 12, 1])
  })

  test('gives up what is refused when it has to finish', async () => {
    const s = setup()
    s.add(1)
    s.settler.hurry()
    await turn()
    await answerAll(s, () => true)
    const finished = s.settler.finish()
    await s.clock.advance(1_000)
    await answerAll(s, () => true, 1)
    await finished
    expect(s.givenUp).toEqual([1])
    expect(s.clock.sleeping).toBe(0)
  })

  test('offers what is locked again, later each time, and writes the others meanwhile', async () => {
    const { clock, writes, written, settler, add } = setup()
    const offer = async (locked: (item: Settled) => boolean): Promise<void> => {
      await turn()
      const { batch, answer } = writes.at(-1) ?? {}
      answer?.resolve({ ...WRITTEN, busy: batch?.filter(locked) ?? [] })
      await turn()
    }
    const isFirst = ({ delivery }: Settled): boolean => delivery.position === '1'
    add(1, 2)
    settler.hurry()
    await offer(isFirst)
    expect(written.flatMap(({ positions }) => positions)).toEqual([2])
    add(3)
    settler.hurry()
    await offer(isFirst)
    expect(written.flatMap(({ positions }) => positions)).toEqual([2, 3])
    await clock.advance(10)
    await offer(isFirst)
    await clock.advance(19)
    expect(writes).toHaveLength(3)
    await clock.advance(1)
    await offer(() => false)
    expect(written.flatMap(({ positions }) => positions)).toEqual([2, 3, 1])
    expect(written.every(({ again }) => !again)).toBe(true)
  })

  test('says of one that was found locked that a try before may have written it', async () => {
    const { clock, writes, written, settler, add } = setup()
    add(1, 2)
    settler.hurry()
    await turn()
    writes.at(-1)?.answer.reject(new Error('connection cut'))
    await clock.advance(1_000)
    writes.at(-1)?.answer.resolve({ ...WRITTEN, busy: writes.at(-1)?.batch.slice(0, 1) ?? [] })
    await clock.advance(10)
    writes.at(-1)?.answer.resolve(WRITTEN)
    await turn()
    expect(written).toEqual([
      { positions: [2], again: true },
      { positions: [1], again: true },
    ])
  })

  test('has flushed when all that is left is locked, and has finished when that is written or given up', async () => {
    const { writes, giveUp, givenUp, settler, add } = setup()
    add(1)
    const flushed = settler.flush()
    let isFinished = false
    const finished = settler.finish().then(() => {
      isFinished = true
    })
    await turn()
    const answerBusy = (): void => {
      const { batch, answer } = writes.at(-1) ?? {}
      answer?.resolve({ ...WRITTEN, busy: batch ?? [] })
    }
    answerBusy()
    await flushed
    expect(isFinished).toBe(false)
    giveUp.abort()
    await turn()
    answerBusy()
    await finished
    expect(givenUp).toEqual([1])
  })

  test('gives up when the worker has to end', async () => {
    const { clock, giveUp, writes, givenUp, settler, add } = setup()
    add(1)
    const flushed = settler.flush()
    await turn()
    writes[0]?.answer.reject(new Error('connection cut'))
    await turn()
    giveUp.abort()
    await turn()
    writes[1]?.answer.reject(new Error('connection cut'))
    await flushed
    expect(givenUp).toEqual([1])
    expect(clock.sleeping).toBe(0)
  })

  test('flush waits for everything that was added', async () => {
    const { writes, written, settler, add } = setup({ batchSize: 1 })
    add(1, 2, 3)
    const flushed = settler.flush()
    await turn()
    for (let index = 0; index < 3 && writes[index] !== undefined; index += 1) {
      writes[index]?.answer.resolve(WRITTEN)
      await turn()
    }
    await flushed
    expect(written.flatMap(({ positions }) => positions)).toEqual([1, 2, 3])
  })

  test('flush does not wait for what is added after it, however much that is', async () => {
    const { writes, written, settler, add } = setup({ batchSize: 1 })
    add(1, 2)
    let isFlushed = false
    const flushed = settler.flush().then(() => {
      isFlushed = true
    })
    for (let position = 3; position < 10 && !isFlushed; position += 1) {
      await turn()
      add(position)
      writes.at(-1)?.answer.resolve(WRITTEN)
      await turn()
    }
    expect(isFlushed).toBe(true)
    await flushed
    expect(written.flatMap(({ positions }) => positions).slice(0, 2)).toEqual([1, 2])
  })
})
