import { expect, test } from 'vitest'
import type { LoggedEvent } from '../../src/store/stream-store.ts'
import { KeyChains } from '../../src/stream/key-chains.ts'
import type { LogEntry } from '../../src/stream/log-window.ts'

function entry(key: string | null): LogEntry {
  return { event: {} as LoggedEvent, key, mayStandIn: false, next: null, done: false, aside: false }
}

test('of a key one is ready at a time, and of none all', () => {
  const chains = new KeyChains(false)
  const [a1, a2, b1, free] = [entry('a'), entry('a'), entry('b'), entry(null)] as const
  for (const one of [a1, a2, b1, free]) chains.add(one)
  expect([chains.take(), chains.take(), chains.take(), chains.take()]).toEqual([a1, b1, free, undefined])
  chains.ended(a1)
  expect([chains.take(), chains.take()]).toEqual([a2, undefined])
})

test('of those handed over together, none behind one that was set aside starts any more', () => {
  const chains = new KeyChains(true)
  const [a1, a2, b1, a3] = [entry('a'), entry('a'), entry('b'), entry('a')] as const
  for (const one of [a1, a2, b1, a3]) chains.add(one)
  expect(chains.take()).toBe(a1)
  expect(chains.cut(a1)).toEqual([a2, a3])
  expect([chains.ready, chains.take(), chains.take()]).toEqual([1, b1, undefined])
})

test('that some are always ready takes no more memory the longer it lasts', () => {
  const chains = new KeyChains(false)
  const one = entry(null)
  for (let ready = 0; ready < 10; ready += 1) chains.add(one)
  const before = process.memoryUsage().heapUsed
  for (let n = 0; n < 20_000_000; n += 1) {
    chains.add(one)
    chains.take()
  }
  expect(chains.ready).toBe(10)
  // A slot for each that ever was would be 160 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(50_000_000)
})
