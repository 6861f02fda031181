import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { OutboxEvent } from '../../src/index.ts'
import { createOutbox } from '../../src/outbox.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { signal } from '../acceptance/support.ts'
import { bePatient, comes } from '../support/patience.ts'
import { shopEvents } from '../worker/postgres-outbox.ts'
import {
  LEASE_MS,
  numbersOf,
  type StreamScene,
  type StreamServer,
  startStreamServer,
  stopReader,
  streamScene,
} from './scene.ts'

bePatient()

let server: StreamServer
beforeAll(async () => {
  server = await startStreamServer(18)
})
afterAll(() => server[Symbol.asyncDispose]())

/** Until its reader knows of everything that is committed by now: of heartbeats two may have begun before. */
async function heartbeats({ pool, schema }: StreamScene): Promise<void> {
  const until = async (): Promise<unknown> =>
    (await pool.query(`select until::text from ${schema}.outbox_stream`)).rows[0]
  for (let count = 0; count < 3; count += 1) {
    const before = JSON.stringify(await until())
    await comes('a heartbeat', async () => JSON.stringify(await until()) !== before)
  }
}

describe('a stream subscription', () => {
  test('begins with what was there before, if it is to', async () => {
    await using scene = await streamScene(server.url)
    for (let n = 0; n < 30; n += 1) await scene.place('a', 'b')
    const reader = scene.work('all', { startFrom: 'beginning', order: 'total' })
    await reader.worker.start()
    await reader.saw('streaming')
    await scene.place('c')
    await reader.handled(61)
    expect(numbersOf(reader.events)).toEqual(Array.from({ length: 61 }, (_, index) => index + 1))
  })

  test('begins at a time, if it is to', async () => {
    await using scene = await streamScene(server.url)
    await scene.place('before')
    const { rows } = await scene.pool.query('select clock_timestamp() as now')
    await comes('a later millisecond', async () => {
      const later = await scene.pool.query(
        `select clock_timestamp() > $1::timestamptz + interval '5 ms' as yes`,
        [rows[0].now],
      )
      return later.rows[0].yes
    })
    await scene.place('after')
    const reader = scene.work('since', { startFrom: new Date(rows[0].now.getTime() + 1) })
    await reader.worker.start()
    await reader.handled(1)
    await reader.saw('streaming')
    await scene.place('later')
    await reader.handled(2)
    expect(reader.events.map(({ aggregateId }) => aggregateId)).toEqual(['after', 'later'])
  })

  test('is paused for everybody, and goes on where it was', async () => {
    await using scene = await streamScene(server.url)
    const reader = scene.work('mirror')
    await reader.worker.start()
    await reader.saw('streaming')
    await scene.outbox.pause('mirror', { operator: 'kim' })
    await scene.place('a', 'b')
    const { rows } = await scene.pool.query(
      `select event_id, clock_timestamp() + interval '${LEASE_MS + 500} ms' as soon from ${scene.schema}.outbox_event limit 1`,
    )
    const why = await scene.outbox.proof.why(rows[0].event_id)
    expect(why.subscriptions[0]?.reason).toMatchObject({ kind: 'paused', by: 'kim' })
    const { snapshot } = await scene.progress()
    const { epoch } = await scene.progress()
    await comes('two heartbeats', async () => {
      const { rows: beats } = await scene.pool.query(
        `select until > $1::timestamptz as later from ${scene.schema}.outbox_stream`,
        [rows[0].soon],
      )
      return beats[0].later
    })
    expect(await scene.progress()).toMatchObject({ snapshot, epoch })
    expect(reader.events).toEqual([])
    await scene.outbox.resume('mirror', { operator: 'kim' })
    await reader.handled(2)
    await comes('it is past it', async () => {
      const { subscriptions } = await scene.outbox.proof.why(rows[0].event_id)
      return subscriptions[0]?.reason.kind === 'streamed'
    })
  })

  test('is paused also for what the reader has in hand; what runs is not disturbed', async () => {
    await using scene = await streamScene(server.url)
    const first = signal()
    const reader = scene.work('mirror', { concurrency: 1 }, () => first.happened)
    await reader.worker.start()
    await reader.saw('streaming')
    // In one transaction, so that the others are in hand while the first runs.
    await scene.place('a', 'b', 'c')
    await comes('the first runs', () => reader.events.length === 1)
    await scene.outbox.pause('mirror', { operator: 'kim' })
    await heartbeats(scene)
    first.happen()
    await reader.handled(1)
    await heartbeats(scene)
    expect(numbersOf(reader.events)).toEqual([1])
    await scene.outbox.resume('mirror', { operator: 'kim' })
    await reader.handled(3)
    expect(numbersOf(reader.events)).toEqual([1, 2, 3])
  })

  test('is taken over when the lease of a reader that vanished ends, however rarely it was looked for', async () => {
    await using scene = await streamScene(server.url)
    const first = scene.work('mirror')
    await first.worker.start()
    await first.saw('streaming')
    await stopReader(first, scene)
    const told: string[] = []
    const heir = scene.outbox.worker(
      [scene.outbox.subscription('mirror', { engine: 'stream', on: { '*': () => undefined } })],
      // It would look every quarter of an hour.
      { leaseMs: 3_600_000, observers: [({ kind }) => told.push(kind)] },
    )
    await scene.pool.query(
      `update ${scene.schema}.outbox_stream set owner = 'gone', until = clock_timestamp() + interval '3 s'`,
    )
    await heir.start()
    await comes('it reads', () => told.includes('streaming'))
    await heir.stop()
  })

  test('takes its slot along when it is retired', async () => {
    await using scene = await streamScene(server.url)
    const reader = scene.work('mirror')
    await reader.worker.start()
    await reader.saw('streaming')
    expect(await scene.slots()).toHaveLength(1)
    await scene.outbox.retire('mirror', { operator: 'kim', force: true })
    await comes('the slot is gone', async () => (await scene.slots()).length === 0)
  })

  test('an event that it alone takes is not reported as taken by nobody, and is kept until it is past it', async () => {
    await using scene = await streamScene(server.url)
    const reader = scene.work('mirror')
    await reader.worker.start()
    await reader.saw('streaming')
    await reader.worker.stop()
    await scene.place('a')
    const { rows } = await scene.pool.query(`select event_id from ${scene.schema}.outbox_event`)
    const forget = `select ${scene.schema}.outbox_forget($1) as n`
    expect((await scene.pool.query(forget, [[rows[0].event_id]])).rows).toEqual([{ n: 0 }])
    const unmatched = await scene.pool.query(
      `select count(*)::int as n from ${scene.schema}.outbox_unmatched`,
    )
    expect(unmatched.rows).toEqual([{ n: 0 }])
    const heir = scene.work('mirror')
    await heir.worker.start()
    await heir.handled(1)
    await comes('it may go', async () => {
      return (await scene.pool.query(forget, [[rows[0].event_id]])).rows[0].n === 1
    })
  })

  test('that is widened gets everything of the new part that was published since, also from a reader that knew less', async () => {
    await using scene = await streamScene(server.url)
    const outbox = createOutbox({
      store: postgresStore({ pool: scene.pool, schema: scene.schema }),
      events: shopEvents,
    })
    const seen: string[] = []
    const told: string[] = []
    const workerFor = (types: readonly ('OrderPlaced' | 'OrderPaid')[]) =>
      outbox.worker(
        [
          outbox.subscription('grows', {
            engine: 'stream',
            on: Object.fromEntries(
              types.map((type) => [
                type,
                ({ type: name, aggregateId }: { type: string; aggregateId: string }) =>
                  void seen.push(`${name} ${aggregateId}`),
              ]),
            ),
          }),
        ],
        { leaseMs: LEASE_MS, housekeepingMs: 50, observers: [({ kind }) => told.push(kind)] },
      )
    const narrow = workerFor(['OrderPlaced'])
    await narrow.start()
    await comes('it reads', () => told.includes('streaming'))
    const paid = (aggregateId: string) =>
      scene.outbox.inTransaction(scene.pool, (tx) =>
        scene.outbox.publish(tx, 'OrderPaid', { aggregateId, payload: { n: 0 } }),
      )
    await paid('before')
    const wide = workerFor(['OrderPlaced', 'OrderPaid'])
    await wide.start()
    for (let n = 0; n < 20; n += 1) await paid(`after-${n}`)
    await comes('some of the new part', () => seen.length > 0)
    // What the one that knows less gets, it puts back for a while: how often that happens is chance, for as long as it is there.
    await narrow.stop()
    await comes('all of the new part', () => new Set(seen).size >= 20)
    expect(seen).not.toContain('OrderPaid before')
    await wide.stop()
    const { holds } = await scene.outbox.proof.verify()
    expect(holds).toBe(true)
  })

  test('loses nothing and keeps order while its slot is taken away again and again under load', async () => {
    await using scene = await streamScene(server.url)
    const arrivals: OutboxEvent[] = []
    const noted = (event: OutboxEvent): void => void arrivals.push(event)
    const readers = [1, 2].map(() => scene.work('mirror', { order: 'aggregate' }, noted))
    for (const { worker } of readers) await worker.start()
    await comes('one reads', () => readers.some(({ told }) => told.some(({ kind }) => kind === 'streaming')))
    let publishing = true
    const publishers = Array.from({ length: 4 }, async (_, publisher) => {
      let turn = 0
      while (publishing) {
        const client = await scene.pool.connect()
        await client.query('begin')
        // An early transaction id, and a while before the commit.
        await client.query('select pg_current_xact_id()')
        await scene.outbox.publish(client, 'OrderPaid', {
          aggregateId: `p${publisher}`,
          payload: { n: publisher },
        })
        await client.query('select pg_sleep(random() * 0.03)')
        turn += 1
        await client.query(turn % 10 === 0 ? 'rollback' : 'commit')
        client.release()
      }
    })
    for (let round = 0; round < 8; round += 1) {
      await scene.pool.query('select pg_sleep(0.7)')
      await scene.pool
        .query(
          `select pg_terminate_backend(active_pid, 1000) from pg_replication_slots
            where slot_name = (select slot from ${scene.schema}.outbox_stream);
           select pg_drop_replication_slot(slot_name) from pg_replication_slots
            where slot_name = (select slot from ${scene.schema}.outbox_stream)`,
        )
        .catch(() => undefined)
    }
    publishing = false
    await Promise.all(publishers)
    const { rows } = await scene.pool.query(`select event_id from ${scene.schema}.outbox_event order by id`)
    await comes('all have come', () => {
      const ids = new Set(arrivals.map(({ eventId }) => eventId))
      return rows.every(({ event_id }) => ids.has(event_id))
    })
    expect(rows.length).toBeGreaterThan(50)
    const firsts = new Map(arrivals.toReversed().map((event) => [event.eventId, event]))
    const inOrder = arrivals.filter((event) => firsts.get(event.eventId) === event)
    for (const key of ['p0', 'p1', 'p2', 'p3']) {
      const positions = inOrder
        .filter(({ aggregateId }) => aggregateId === key)
        .map(({ position }) => Number(position))
      expect(positions).toEqual(positions.toSorted((one, other) => one - other))
    }
    expect(readers.some(({ told }) => told.some(({ kind }) => kind === 'streamGap'))).toBe(true)
    await comes('verify counts all', async () => {
      const { subscriptions, holds } = await scene.outbox.proof.verify()
      expect(holds).toBe(true)
      return subscriptions[0]?.matched === rows.length
    })
  })
})
