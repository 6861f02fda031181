import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../src/runtime/clock.ts'
import { signal } from '../acceptance/support.ts'
import { comes } from '../support/patience.ts'
import { numbersOf, type StreamServer, startStreamServer, streamScene } from './scene.ts'

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

test('nor does a relay send what it had in hand, though the answer to its last batch is the first that it meets', async () => {
  let suspendedMs = 0
  const clock = { ...systemClock, sinceBootMs: () => systemClock.monotonicMs() + suspendedMs }
  await using scene = await streamScene(server.url, clock)
  const answered = signal()
  const sent: { readonly count: number; readonly isLost: boolean }[] = []
  let prepared = 0
  const reader = scene.relay('to-somewhere', {
    batchSize: 2,
    via: {
      open: () => ({
        send: async (events) => {
          sent.push({ count: events.length, isLost: reader.told.some(({ kind }) => kind === 'error') })
          await answered.happened
          return events.map(() => ({ kind: 'handled' }))
        },
        prepare: () => {
          prepared += 1
        },
        close: async () => {},
      }),
    },
  })
  await reader.worker.active()
  await reader.saw('streaming')
  await scene.place('a', 'b', 'c', 'd')
  await comes('the first batch is under way, and the second is in hand', () => prepared === 2)
  const silence = await scene.pool.connect()
  try {
    await silence.query(`begin; select 1 from ${scene.schema}.outbox_stream for update`)
    suspendedMs = 3_600_000
    answered.happen()
    await reader.saw('released', 2)
    expect(sent).toEqual([{ count: 2, isLost: false }])
  } finally {
    await silence.query('rollback')
    silence.release()
  }
  await comes('the second is sent', () => sent.length > 1)
  expect(sent[1]).toMatchObject({ isLost: true })
})
