import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../src/runtime/clock.ts'
import { nextTurn } from '../../src/runtime/turn.ts'
import type { RelayOptions } from '../../src/worker/subscription-options.ts'
import { signal } from '../acceptance/support.ts'
import { comes } from '../support/patience.ts'
import { numbersOf, type StreamScene, type StreamServer, startStreamServer, streamScene } from './scene.ts'

let server: StreamServer
beforeAll(async () => {
  server = await startStreamServer(18)
})
afterAll(() => server[Symbol.asyncDispose]())

test('a reader whose machine was suspended past its lease starts no handler before the database says that it reads', async () => {
  let suspendedMs = 0
  const clock = { ...systemClock, sinceBootMs: () => systemClock.monotonicMs() + suspendedMs }
  await using scene = await streamScene(server.url, clock)
  const first = signal()
  const reader = scene.work('mirror', { concurrency: 1 }, () => first.happened)
  await reader.worker.active()
  await reader.saw('streaming')
  // In one transaction, so that the second is in hand while the first runs.
  await scene.place('a', 'b')
  await comes('the first runs', () => reader.events.length === 1)
  const silence = await scene.pool.connect()
  try {
    await silence.query(`begin; select 1 from ${scene.schema}.outbox_stream for update`)
    suspendedMs = 3_600_000
    first.happen()
    await reader.handled(1)
    expect(numbersOf(reader.events), 'no heartbeat has been answered').toEqual([1])
  } finally {
    await silence.query('rollback')
    silence.release()
  }
  await comes('the second runs', () => numbersOf(reader.events).includes(2))
})

test('and tells the handlers that run, though no heartbeat is answered', async () => {
  let suspendedMs = 0
  const clock = { ...systemClock, sinceBootMs: () => systemClock.monotonicMs() + suspendedMs }
  await using scene = await streamScene(server.url, clock)
  const reader = scene.work('mirror', {}, () =>
    reader.events.length > 1 ? undefined : new Promise(() => undefined),
  )
  await reader.worker.active()
  await reader.saw('streaming')
  await scene.place('a')
  await comes('it runs', () => reader.events.length === 1)
  const silence = await scene.pool.connect()
  try {
    await silence.query(`begin; select 1 from ${scene.schema}.outbox_stream for update`)
    suspendedMs = 3_600_000
    await reader.saw('released')
  } finally {
    await silence.query('rollback')
    silence.release()
  }
  await comes('it runs again', () => reader.events.length === 2)
})

/** A relay whose first batch is answered when told, and what it was seen to send after it had given anything back. */
function waitingRelay(scene: StreamScene, options: Partial<RelayOptions>) {
  const answered = signal()
  const seen = { batches: 0, prepared: 0, tooLate: 0 }
  const relay = scene.relay('to-somewhere', {
    ...options,
    via: {
      open: () => ({
        send: async (events) => {
          seen.batches += 1
          if (seen.batches > 1 && !relay.told.some(({ kind }) => kind === 'released')) seen.tooLate += 1
          await answered.happened
          return events.map(() => ({ kind: 'handled' }))
        },
        prepare: () => {
          seen.prepared += 1
        },
        close: async () => {},
      }),
    },
  })
  return { relay, seen, answered }
}

test('nor does a relay send what it had in hand, though the answer to its last batch is the first that it meets', async () => {
  let suspendedMs = 0
  const clock = { ...systemClock, sinceBootMs: () => systemClock.monotonicMs() + suspendedMs }
  await using scene = await streamScene(server.url, clock)
  const { relay, seen, answered } = waitingRelay(scene, { batchSize: 2 })
  await relay.worker.active()
  await relay.saw('streaming')
  await scene.place('a', 'b', 'c', 'd')
  await comes('the first batch is under way, and the second is in hand', () => seen.prepared === 2)
  suspendedMs = 3_600_000
  answered.happen()
  await comes('the second is sent', () => seen.batches > 1)
  expect(seen.tooLate).toBe(0)
})

test('nor one that has deliveries', async () => {
  let suspendedMs = 0
  const clock = { ...systemClock, sinceBootMs: () => systemClock.monotonicMs() + suspendedMs }
  await using scene = await streamScene(server.url, clock)
  const { relay, seen, answered } = waitingRelay(scene, { engine: 'queue', batchSize: 4 })
  await relay.worker.active()
  await scene.place('a', 'b')
  await comes('the first batch is under way', () => seen.batches === 1)
  await scene.place('c', 'd')
  await comes('the second is in hand', () => {
    const claims = relay.told.filter((event) => event.kind === 'claimed')
    return claims.reduce((sum, { count }) => sum + count, 0) === 4
  })
  await nextTurn()
  suspendedMs = 3_600_000
  answered.happen()
  await comes('the second is sent', () => seen.batches > 1)
  expect(seen.tooLate).toBe(0)
})
