import { describe, expect, test } from 'vitest'
import type { Settled } from '../../src/delivery/delivery.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { Settler } from '../../src/settle/settler.ts'
import type { SettleReport } from '../../src/store/queue-store.ts'
import { type Deferred, deferred, deliveryAt, noJitter, positionsOf, turn } from '../queue/fakes.ts'

const WRITTEN: SettleReport = { lost: [], dead: [] }

function settled(position: number): Settled {
  return { delivery: deliveryAt(position), settlement: { kind: 'done' }, durationMs: 1 }
}

/** A settler whose writes are answered by the test. */
function setup({ batchSize = 100 } = {}) {
  const clock = new ManualClock()
  const giveUp = new AbortController()
  const writes: { readonly positions: number[]; readonly answer: Deferred<SettleReport> }[] = []
  const written: { readonly positions: number[]; readonly again: boolean }[] = []
  const givenUp: number[] = []
  const outages: unknown[] = []
  const settler = new Settler<Settled>({
    settle: (batch) => {
      const answer = deferred<SettleReport>()
      writes.push({ positions: positionsOf(batch), answer })
      return answer.promise
    },
    clock,
    random: noJitter,
    batchSize,
    giveUp: giveUp.signal,
    onSettled: (batch, _, again) => void written.push({ positions: positionsOf(batch), again }),
    onGivenUp: (batch) => void givenUp.push(...positionsOf(batch)),
    onOutage: (error) => void outages.push(error),
  })
  const add = (...positions: number[]): void => {
    for (const position of positions) settler.add(settled(position))
  }
  return { clock, giveUp, writes, written, givenUp, outages, settler, add }
}

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

  test('finds the one row that the database refuses and writes all others', async () => {
    const { writes, written, givenUp, settler, add } = setup()
    add(1, 2, 3, 4)
    settler.hurry()
    await turn()
    for (let index = 0; index < writes.length && index < 20; index += 1) {
      const write = writes[index]
      if (write?.positions.includes(3))
        write.answer.reject(Object.assign(new Error('bad'), { code: '22P05' }))
      else write?.answer.resolve(WRITTEN)
      await turn()
    }
    expect(written.flatMap(({ positions }) => positions)).toEqual([1, 2, 4])
    expect(givenUp).toEqual([3])
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
})
