import { expect, test } from 'vitest'
import { Collected } from '../../src/settle/collected.ts'
import { turn } from '../queue/fakes.ts'

test('whoever waits for what is collected waits for all of it, whatever is taken out of turn, and for nothing later', async () => {
  const collected = new Collected<number>()
  for (const item of [1, 2, 3, 4]) collected.push(item)
  let isServed = false
  void collected.untilDealtWith().then(() => {
    isServed = true
  })
  collected.push(5)
  expect(collected.takeOut((item) => item > 2)).toEqual([3, 4, 5])
  collected.push(6)
  expect(collected.take(1)).toEqual([1])
  collected.dealtWith()
  await turn()
  expect(isServed).toBe(false)
  expect(collected.take(1)).toEqual([2])
  expect(collected.isAwaited).toBe(true)
  collected.dealtWith()
  await turn()
  expect(isServed).toBe(true)
  expect(collected.first(10)).toEqual([6])
})
