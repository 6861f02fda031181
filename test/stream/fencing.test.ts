import { expect, test } from 'vitest'
import { postgresStore } from '../../src/store/postgres/index.ts'
import type { StreamLease, StreamStore } from '../../src/store/stream-store.ts'
import { createTestDatabaseWithTables } from '../support/database.ts'
import { comes } from '../support/patience.ts'

const definition = {
  name: 'mirror',
  streams: null,
  eventTypes: null,
  orderBy: 'none',
  lanes: 0,
  onDead: 'block',
  maxAttempts: 5,
  startFrom: 'now',
  engine: 'stream',
} as const

async function taken(streams: StreamStore, id: number, by: string, leaseMs: number): Promise<StreamLease> {
  const lease = await streams.takeStream(id, by, leaseMs)
  if (lease === 'retired' || 'heldForMs' in lease) throw new Error(`it is not free: ${JSON.stringify(lease)}`)
  return lease
}

test('one has the log at a time, and whoever lost it can write nothing more: not how far it is, not what failed', async () => {
  await using database = await createTestDatabaseWithTables()
  const store = postgresStore({ pool: database.pool, schema: database.schema }).openWorker()
  const streams = (await store.openStreams()) as StreamStore
  const { id } = await store.register(definition)
  const first = await taken(streams, id, 'first', 60_000)
  const held = (await streams.takeStream(id, 'second', 10)) as { readonly heldForMs: number }
  expect(held.heldForMs).toBeGreaterThan(10)
  expect(held.heldForMs).toBeLessThanOrEqual(60_000)
  expect(await streams.beatStream(first, 1)).toMatchObject({ held: true })
  await comes(
    'the lease has lapsed',
    async () => 'epoch' in ((await streams.takeStream(id, 'second', 60_000)) as object),
  )
  await database.pool.query(`update outbox_stream set lsn = '0/10', server = 'x'`)
  const { rows: before } = await database.pool.query('select xmin, * from outbox_stream')

  const parked = {
    position: '7',
    eventId: '01890000-0000-7000-8000-000000000000',
    orderingKey: null,
    kind: 'wait',
    delayMs: 0,
    failure: null,
    durationMs: 0,
  } as const
  expect(await streams.beatStream(first, 60_000)).toMatchObject({ held: false })
  expect(await streams.streamGate(first, [], [])).toMatchObject({ held: false })
  expect(await streams.recordProgress(first, { lsn: 99n, snapshot: '9:9:', settled: true })).toBe(false)
  expect(await streams.parkEvents(first, [parked])).toBe(false)
  await streams.releaseStream(first)

  expect((await database.pool.query('select xmin, * from outbox_stream')).rows).toEqual(before)
  expect((await database.pool.query('select 1 from outbox_delivery')).rows).toEqual([])
  await store.close()
})

test('a reader that was taken for crashed is counted, one that gave the log back is not', async () => {
  await using database = await createTestDatabaseWithTables()
  const store = postgresStore({ pool: database.pool, schema: database.schema }).openWorker()
  const streams = (await store.openStreams()) as StreamStore
  const { id } = await store.register(definition)
  await streams.releaseStream(await taken(streams, id, 'first', 60_000))
  expect((await taken(streams, id, 'second', 0)).crashes).toBe(0)
  await comes(
    'it has lapsed',
    async () =>
      (await database.pool.query('select 1 from outbox_stream where until < clock_timestamp()')).rows
        .length === 1,
  )
  expect((await taken(streams, id, 'third', 60_000)).crashes).toBe(1)
  await store.close()
})
