import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { bePatient, comes } from '../support/patience.ts'
import { startStreamServer, streamScene } from './scene.ts'

bePatient()

/** More than a reader takes in hand: it stops to read the socket. */
const MANY = 15_000
/** How long the server waits for a sign of life, and how long the handler takes. */
const WAITS_SECONDS = 5
const TAKES_SECONDS = 8

test('a handler that takes longer than the server waits for a sign of life costs no connection, and all comes in the end', async () => {
  await using server = await startStreamServer(18, { wal_sender_timeout: `${WAITS_SECONDS}s` })
  await using scene = await streamScene(server.url)
  let release: () => void = () => undefined
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const reader = scene.work('mirror', { timeoutMs: null }, () => held)
  await reader.worker.start()
  await reader.saw('streaming')
  const before = (await scene.slots())[0]?.['active_pid']
  await scene.pool.query(
    `insert into ${scene.schema}.outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
     select 'shop.order', 'OrderPlaced', 'order', n::text, jsonb_build_object('n', n) from generate_series(1, ${MANY}) n`,
  )
  await comes('some are in hand', () => reader.events.length === 10)
  await comes('its time is over', async () => {
    const { rows } = await scene.pool.query(
      `select clock_timestamp() > max(created_at) + interval '${TAKES_SECONDS} s' as over from ${scene.schema}.outbox_event`,
    )
    return rows[0].over
  })
  expect((await scene.slots())[0]?.['active_pid']).toBe(before)
  release()
  await reader.handled(MANY)
  await comes('all of them', () => new Set(reader.events.map(({ eventId }) => eventId)).size === MANY)
})

/** Handed over and never handled, each behind another event that is not for this subscription and fills what a socket brings. */
const FEW_OF_MUCH = 1_000
const NOISE_BYTES = 70_000

test('of a log of which few events are wanted, only those are in memory while they wait', async () => {
  await using server = await startStreamServer(18)
  await using scene = await streamScene(server.url)
  let release: () => void = () => undefined
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const options = { streams: ['shop.order'], concurrency: FEW_OF_MUCH, timeoutMs: null } as const
  const reader = scene.work('mirror', options, () => held)
  await reader.worker.start()
  await reader.saw('streaming')
  const before = bytesInUse()
  await scene.pool.query(
    `insert into ${scene.schema}.outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
     select s.name, 'OrderPlaced', 'order', n::text, jsonb_build_object('n', n, 'filled', s.filled)
       from generate_series(1, ${FEW_OF_MUCH}) n
       cross join (values ('shop.noise', repeat('x', ${NOISE_BYTES})), ('shop.order', '')) s (name, filled)`,
  )
  await comes('all are in hand', () => reader.events.length === FEW_OF_MUCH)
  // All that came was 70 MB.
  expect(bytesInUse() - before).toBeLessThan(10_000_000)
  release()
  await reader.handled(FEW_OF_MUCH)
  const numbers = reader.events.map(({ payload }) => (payload as { readonly n: number }).n)
  expect(numbers).toEqual(Array.from({ length: FEW_OF_MUCH }, (_, index) => index + 1))
})

/** What buffers take, garbage left out. */
function bytesInUse(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  return process.memoryUsage().arrayBuffers
}
