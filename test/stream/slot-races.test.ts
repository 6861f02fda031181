import { afterAll, beforeAll, expect, test } from 'vitest'
import type { OutboxEvent } from '../../src/index.ts'
import type { WorkerEvent } from '../../src/observe/worker-events.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { SoloGate } from '../../src/runtime/gate.ts'
import { quoteSchema } from '../../src/store/postgres/identifiers.ts'
import { PostgresStreamStore } from '../../src/store/postgres/stream-store.ts'
import type { StreamLease } from '../../src/store/stream-store.ts'
import { StreamReader } from '../../src/stream/stream-reader.ts'
import { SteppingPool } from '../hazards/stepping-pool.ts'
import { comes } from '../support/patience.ts'
import {
  LEASE_MS,
  numbersOf,
  type StreamScene,
  type StreamServer,
  startStreamServer,
  stopReader,
  streamScene,
} from './scene.ts'

let server: StreamServer
beforeAll(async () => {
  server = await startStreamServer(18)
})
afterAll(() => server[Symbol.asyncDispose]())

/** A stream subscription that has read something, and whose only reader has stopped. Returns its id. */
async function readOnce(scene: StreamScene): Promise<number> {
  const reader = scene.work('mirror')
  await reader.worker.start()
  await reader.saw('streaming')
  await scene.place('a')
  await reader.handled(1)
  await stopReader(reader, scene)
  const { rows } = await scene.pool.query(`select id from ${scene.schema}.outbox_subscription`)
  return Number(rows[0].id)
}

test('a slot that is moved after it was looked at, and before it is read, is told of: what it lost comes from the table', async () => {
  await using scene = await streamScene(server.url)
  const id = await readOnce(scene)
  for (let n = 0; n < 5; n += 1) await scene.place('a')
  const stepping = new SteppingPool(scene.pool)
  const looked = stepping.holdBefore(/pg_terminate_backend/)
  const events: OutboxEvent[] = []
  const told: WorkerEvent[] = []
  const reader = new StreamReader({
    store: new PostgresStreamStore(stepping, scene.pool, quoteSchema(scene.schema), systemClock),
    subscription: { id, name: 'mirror', orderBy: 'total' },
    workerId: 'second',
    leaseMs: LEASE_MS,
    marginMs: 0,
    concurrency: 1,
    together: false,
    walBudgetBytes: Number.POSITIVE_INFINITY,
    dispatch: ({ event }) => {
      events.push(event)
      return { kind: 'handled' }
    },
    interrupt: () => undefined,
    decide: () => ({ kind: 'done' }),
    soloGate: new SoloGate(),
    clock: systemClock,
    random: Math.random,
    observer: (event) => told.push(event),
  })
  reader.start()
  await looked.reached
  await scene.pool.query(
    `select pg_replication_slot_advance(slot, pg_current_wal_lsn()) from ${scene.schema}.outbox_stream`,
  )
  await scene.place('a')
  looked.go()
  await comes('the last', () => numbersOf(events).includes(7))
  // The first may not have been recorded yet.
  expect(numbersOf(events).filter((n) => n > 1)).toEqual([2, 3, 4, 5, 6, 7])
  expect(told).toContainEqual({ kind: 'streamGap', subscription: 'mirror', reason: 'slot-advanced' })
  await reader.stop()
})

test('a reader that wakes up after another has begun the log anew leaves the slot of that one alone', async () => {
  await using scene = await streamScene(server.url)
  const id = await readOnce(scene)
  const streams = new PostgresStreamStore(scene.pool, scene.pool, quoteSchema(scene.schema), systemClock)
  const take = async (by: string): Promise<StreamLease> => {
    await scene.pool.query(`update ${scene.schema}.outbox_stream set until = '-infinity'`)
    return (await streams.takeStream(id, by, LEASE_MS)) as StreamLease
  }
  const sleeper = streams.openLog(await take('sleeper'))
  await sleeper.dropLog('slot-missing')
  await sleeper.beginLog()

  const heir = streams.openLog(await take('heir'))
  await heir.dropLog('slot-missing')
  await heir.beginLog()
  const slots = await scene.slots()
  expect(slots).toHaveLength(1)

  await sleeper.close()
  await expect(sleeper.dropLog('slot-missing')).rejects.toMatchObject({ code: 'LEASE_LOST' })
  expect(await scene.slots()).toEqual(slots)
  // One that still has the lease takes along what nothing relies on.
  await heir.close()
  expect(await scene.slots()).toEqual([])
})
