import { expect, test } from 'vitest'
import { Fifo } from '../../src/stream/fifo.ts'

function taken(fifo: Fifo<number>): readonly number[] {
  const items: number[] = []
  for (let item = fifo.take(); item !== undefined; item = fifo.take()) items.push(item)
  return items
}

function filled(from: number, to: number, fifo = new Fifo<number>()): Fifo<number> {
  for (let n = from; n <= to; n += 1) fifo.push(n)
  return fifo
}

test('what came first is taken first, also where it grew while it stood across the end of its slots', () => {
  const fifo = filled(1, 10)
  expect([fifo.first, fifo.take(), fifo.take(), fifo.take()]).toEqual([1, 1, 2, 3])
  filled(11, 1_000, fifo)
  expect({ size: fifo.size, first: fifo.first }).toEqual({ size: 997, first: 4 })
  expect(taken(fifo)).toEqual(Array.from({ length: 997 }, (_, index) => index + 4))
  expect({ size: fifo.size, first: fifo.first, taken: fifo.take() }).toEqual({ size: 0 })
})

test('what is removed is never taken, and the others keep their order', () => {
  const fifo = filled(1, 14)
  for (let count = 0; count < 10; count += 1) fifo.take()
  filled(15, 20, fifo)
  fifo.remove(new Set([11, 13, 20, 99]))
  expect(fifo.size).toBe(7)
  expect(taken(filled(21, 21, fifo))).toEqual([12, 14, 15, 16, 17, 18, 19, 21])
})
