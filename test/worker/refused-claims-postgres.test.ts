import { describe, expect, test } from 'vitest'
import type { WorkerEvent } from '../../src/observe/worker-events.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { subscription } from '../../src/worker/subscription.ts'
import { hazard, publish } from '../hazards/support.ts'
import {
  aggregates,
  claim,
  claimLanes,
  DONE,
  join,
  LEASE_MS,
  retryLater,
  retryNow,
  settled,
  takeLanes,
  unpark,
} from '../store/contract/helpers.ts'
import { one } from '../store/postgres/fixtures.ts'
import { eventually } from '../support/program.ts'
import { stopRefusing } from '../support/stop-refusing.ts'
import { postgresOutbox, type shopEvents } from './postgres-outbox.ts'

/** A trigger of the user's own that refuses to have some deliveries changed. */
const refusing = (condition: string): string => `
  create or replace function refuse() returns trigger language plpgsql as $$
    begin raise 'the audit says no'; end $$;
  create or replace trigger refuse before update on outbox_delivery
    for each row when (${condition}) execute function refuse()`

const ofAggregates = (ids: readonly string[]): string => ids.map((id) => `'thing:${id}'`).join(', ')

describe('a claim that a trigger refuses', () => {
  test.each(['none', 'aggregate'] as const)(
    'keeps no other event from being delivered, is told with its event, and is done later (order: %s)',
    async (order) => {
      await using postgres = await postgresOutbox()
      const { outbox, pool } = postgres
      const ran: number[] = []
      const errors: Extract<WorkerEvent, { readonly kind: 'error' }>[] = []
      const worker = outbox.worker(
        [
          subscription<typeof shopEvents, object>('sub', {
            order,
            pollMs: 20,
            on: { OrderPlaced: (event) => void ran.push(event.payload.n) },
          }),
        ],
        { listen: false, observers: [(event) => void (event.kind === 'error' && errors.push(event))] },
      )
      await worker.active()
      await pool.query(
        `create function refuse() returns trigger language plpgsql as $$ begin
           if exists (select from outbox_event e where e.event_id = new.event_id and (e.payload ->> 'n')::int in (2, 7))
           then raise 'the audit says no'; end if;
           return new;
         end $$;
         create trigger refuse before update on outbox_delivery
           for each row when (new.status = 'PROCESSING') execute function refuse()`,
      )
      await postgres.place('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'b', 'c')
      const others = order === 'none' ? [1, 3, 4, 5, 6, 8, 9, 10] : [1, 3, 4, 5, 6, 8, 10]
      const untilDone = (count: number): Promise<void> =>
        eventually(`${count} are done`, async () => (await outbox.status())[0]?.counts.DONE === count)
      await untilDone(others.length)
      expect(ran.toSorted((a, b) => a - b)).toEqual(others)
      const idOf = (n: number): Promise<string> =>
        one<string>(pool, `select event_id from outbox_event where payload ->> 'n' = $1`, [String(n)])
      await eventually('both are told', () => errors.length === 2)
      for (const n of [2, 7]) {
        const message = expect.stringContaining(`event ${await idOf(n)} claimed: the audit says no`)
        expect(errors).toContainEqual(
          expect.objectContaining({
            during: 'claim',
            subscription: 'sub',
            error: expect.objectContaining({ code: 'STORE_REFUSED', message }),
          }),
        )
      }
      await stopRefusing(pool)
      await untilDone(10)
      expect(ran.filter((n) => n === 2 || n === 9)).toEqual(order === 'none' ? [9, 2] : [2, 9])
      expect(errors).toHaveLength(2)
      await worker.stop()
    },
  )

  test('is tried again after a while, and told once', async () => {
    await using h = await hazard()
    const clock = new ManualClock()
    const { store, pool } = h.worker('w', clock)
    const sub = await join(store)
    await publish(h.db.pool, ['a', 'b', 'c'])
    const first = await one<number>(h.db.pool, 'select min(id) from outbox_delivery')
    await h.db.pool.query(refusing(`new.status = 'PROCESSING' and new.id = ${first}`))
    const told: string[] = []
    const request = {
      subscriptionId: sub.id,
      workerId: 'w',
      limit: 10,
      leaseMs: LEASE_MS,
      onRefused: (refusal: Error) => void told.push(refusal.message),
    }
    const claimed: string[] = []
    for (let look = 0; look < 8; look += 1) claimed.push(...aggregates(await store.claim(request)))
    expect(claimed).toEqual(['b', 'c'])
    const refusedBefore = pool.sent.length
    await store.claim(request)
    expect(pool.sent.length - refusedBefore, 'it is left alone: one claim is one statement').toBe(1)
    await clock.advance(5_000)
    expect(await store.claim(request)).toEqual([])
    expect(told).toHaveLength(1)
    await stopRefusing(h.db.pool)
    await clock.advance(60_000)
    expect(aggregates(await store.claim(request))).toEqual(['a'])
    expect(told).toHaveLength(1)
  })

  test('stops its key only, whether it is a retry that may not be claimed or one that may not be parked', async () => {
    await using h = await hazard()
    const clock = new ManualClock()
    const { store } = h.worker('w', clock)
    const sub = await join(store, { orderBy: 'aggregate', lanes: 1 })
    const lanes = await takeLanes(store, sub, 'w')
    await publish(h.db.pool, ['stuck', 'parked', 'free', 'late'])
    const [stuck, parked, free, late] = await claimLanes(store, sub, 'w', lanes)
    if (!stuck || !parked || !free || !late) throw new Error('not all were claimed')
    await store.settle([
      settled(stuck, retryNow),
      settled(parked, retryLater),
      settled(free, retryNow),
      settled(late, DONE),
    ])
    await publish(h.db.pool, ['stuck', 'parked', 'free', 'late'])
    // Neither may the retry be claimed, nor the one behind another be parked.
    await h.db.pool.query(refusing(`new.ordering_key in (${ofAggregates(['stuck', 'parked'])})`))
    const claimed: string[] = []
    for (let look = 0; look < 10; look += 1) {
      const taken = await claimLanes(store, sub, 'w', lanes)
      claimed.push(...aggregates(taken))
      await store.settle(taken.map((delivery) => settled(delivery, DONE)))
    }
    expect(claimed.toSorted()).toEqual(['free', 'free', 'late'])
    await stopRefusing(h.db.pool)
    await clock.advance(60_000)
    const [again] = await claimLanes(store, sub, 'w', lanes)
    if (again === undefined) throw new Error('the retry is not claimed')
    expect(again).toMatchObject({ position: stuck.position, attempt: 2 })
    await store.settle([settled(again, DONE)])
    await unpark(store, sub, [again])
    expect(aggregates(await claimLanes(store, sub, 'w', lanes))).toEqual(['stuck'])
  })

  test('of suspects stops one suspect', async () => {
    await using h = await hazard()
    const { store } = h.worker('w')
    const sub = await join(store)
    await publish(h.db.pool, ['a', 'b', 'c'])
    await h.db.pool.query(
      `update outbox_delivery set fresh = false, held = true, suspect = true, next_retry_at = now()`,
    )
    const second = await one<number>(h.db.pool, 'select min(id) + 1 from outbox_delivery')
    await h.db.pool.query(refusing(`new.status = 'PROCESSING' and new.id = ${second}`))
    const request = { subscriptionId: sub.id, workerId: 'w', limit: 3, leaseMs: LEASE_MS }
    const claimed = [...(await store.claimSuspects(request)), ...(await store.claimSuspects(request))]
    expect(aggregates(claimed)).toEqual(['a', 'c'])
  })

  test('is no matter of a row where none may be claimed: then it is an outage, as before', async () => {
    await using h = await hazard()
    const { store } = h.worker('w')
    const sub = await join(store)
    await publish(
      h.db.pool,
      Array.from({ length: 30 }, (_, n) => String(n)),
    )
    await h.db.pool.query(refusing(`new.status = 'PROCESSING'`))
    await expect(claim(store, sub, 'w')).rejects.toThrow('the audit says no')
    await stopRefusing(h.db.pool)
    expect((await claim(store, sub, 'w')).length).toBeGreaterThanOrEqual(20)
  })
})
