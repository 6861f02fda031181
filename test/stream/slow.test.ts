import { expect, test } from 'vitest'
import { bePatient, comes } from '../support/patience.ts'
import { startStreamServer, streamScene } from './scene.ts'

bePatient()

/** More than a reader takes in hand: it stops to read the socket. */
const MANY = 15_000
/** So many heartbeats, of a quarter of a second each, take longer than the server waits for a sign of life. */
const BEATS = 20

test('a handler that takes longer than the server waits for a sign of life costs no connection, and all comes in the end', async () => {
  await using server = await startStreamServer(18, { wal_sender_timeout: '3s' })
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
  for (let beat = 0; beat < BEATS; beat += 1) {
    const { until } = await scene.progress()
    await comes('a heartbeat', async () => String((await scene.progress())['until']) !== String(until))
  }
  expect((await scene.slots())[0]?.['active_pid']).toBe(before)
  release()
  await reader.handled(MANY)
  await comes('all of them', () => new Set(reader.events.map(({ eventId }) => eventId)).size === MANY)
})
