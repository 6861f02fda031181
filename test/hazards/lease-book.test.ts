// What a worker counts of its claims decides when a lease ends. A delivery whose lease ended is found by nobody.
import { describe, expect, test } from 'vitest'
import type { ClaimedDelivery, Settled } from '../../src/delivery/delivery.ts'
import { completeInTransaction } from '../../src/store/postgres/complete-in-transaction.ts'
import { beat, claim, DONE, dead, join, retryLater, settled } from '../store/contract/helpers.ts'
import { column, one } from '../store/postgres/fixtures.ts'
import { onAnyClient } from '../support/any-client.ts'
import { eventually } from '../support/program.ts'
import { type Hazard, hazard, lapse, publish } from './support.ts'

const leases = ({ db }: Hazard): Promise<string> => one(db.pool, 'select count(*) from outbox_lease')

const ENDS_LEASES = /^\s*delete from \S+outbox_lease/

async function complete(h: Hazard, delivery: ClaimedDelivery): Promise<Settled> {
  await completeInTransaction(onAnyClient(h.db.pool), h.db.quoted, delivery)
  return { ...settled(delivery, retryLater), completed: true }
}

describe('a lease that cannot be ended', () => {
  /** Where it says so, the statement that ends leases fails: the connection is gone. */
  function breaking(h: Hazard) {
    const { store, pool } = h.worker('w')
    return {
      store,
      breakEnding: () => {
        pool.rewrite = (text) =>
          ENDS_LEASES.test(text)
            ? 'select pg_terminate_backend(pg_backend_pid()), $1::int[], $2::bigint[]'
            : text
      },
      mend: () => {
        pool.rewrite = (text) => text
      },
    }
  }

  test('costs no report of what was written', async () => {
    await using h = await hazard()
    const { store, breakEnding } = breaking(h)
    const sub = await join(store)
    await publish(h.db.pool, ['a'])
    const [only] = await claim(store, sub, 'w')
    breakEnding()
    const report = await store.settle([settled(only as ClaimedDelivery, dead)])
    expect(report.dead).toHaveLength(1)
    expect(await leases(h)).toBe('1')
  })

  test('does not make a completion count twice: what is left of its claim is found when the worker vanishes', async () => {
    await using h = await hazard()
    const { store, breakEnding, mend } = breaking(h)
    const sub = await join(store)
    await publish(h.db.pool, ['completed', 'done', 'left', 'apart'])
    const [completed, done] = (await claim(store, sub, 'w', 3)) as ClaimedDelivery[]
    const [apart] = (await claim(store, sub, 'w', 1)) as ClaimedDelivery[]
    const batch = [
      await complete(h, completed as ClaimedDelivery),
      settled(apart as ClaimedDelivery, retryLater),
    ]
    breakEnding()
    await store.settle(batch).catch(() => undefined)
    mend()
    await store.settle(batch)
    await store.settle([settled(done as ClaimedDelivery, DONE)])
    await lapse(h.db, 'w')
    await h.worker('second').store.recover([sub.id])
    expect(await column(h.db.pool, 'select status from outbox_delivery order by id')).toEqual([
      'DONE',
      'DONE',
      'PENDING',
      'PENDING',
    ])
  })
})

test('a result that is offered twice at once counts once', async () => {
  await using h = await hazard()
  const { store } = h.worker('w')
  const sub = await join(store)
  await publish(h.db.pool, ['a', 'b'])
  const [a] = await claim(store, sub, 'w')
  const done = settled(a as ClaimedDelivery, DONE)
  await store.settle([done, done])
  await lapse(h.db, 'w')
  const { returned } = await h.worker('second').store.recover([sub.id])
  expect(returned.get(sub.id)).toBe(1)
})

describe('a lease that a person has locked', () => {
  async function locked(h: Hazard) {
    const { store } = h.worker('w')
    const sub = await join(store)
    await publish(h.db.pool, ['a', 'b'])
    const taken = await claim(store, sub, 'w')
    const person = await h.connect('psql')
    await person.query('begin')
    await person.query('select 1 from outbox_lease for update')
    return { store, sub, taken, unlock: () => person.query('rollback') }
  }

  test('keeps no heartbeat waiting, which would cost the worker all its leases', async () => {
    await using h = await hazard()
    const { store, sub, taken } = await locked(h)
    const report = await Promise.race([beat(store, sub, 'w', taken), h.untilBlocked('w')])
    expect(report).toMatchObject({ lostDeliveries: [], busyDeliveries: [] })
  })

  test('keeps no result waiting for longer than a moment', async () => {
    await using h = await hazard()
    const { store, taken } = await locked(h)
    expect(await store.settle(taken.map((delivery) => settled(delivery, DONE)))).toMatchObject({
      lost: [],
      busy: [],
    })
  })
})

test('many small claims of a worker that vanished come back together', async () => {
  await using h = await hazard()
  const { store } = h.worker('w')
  const sub = await join(store)
  await publish(
    h.db.pool,
    Array.from({ length: 100 }, (_, n) => String(n)),
  )
  for (let n = 0; n < 100; n += 1) await claim(store, sub, 'w', 1)
  await lapse(h.db, 'w')
  const { returned } = await h.worker('second').store.recover([sub.id])
  expect(returned.get(sub.id)).toBe(100)
})

test('the leases of a retired subscription are gone when it is closed', async () => {
  await using h = await hazard()
  const { store } = h.worker('w')
  const sub = await join(store)
  await publish(h.db.pool, ['a', 'b'])
  const [a] = await claim(store, sub, 'w', 1)
  await claim(store, sub, 'w', 1)
  await h.db.pool.query(`select outbox_retire('sub', 'me', null, true, true)`)
  expect((await store.settle([settled(a as ClaimedDelivery, DONE)])).lost).toHaveLength(1)
  await eventually('it is closed', () => one<boolean>(h.db.pool, 'select outbox_close_retired() = 0'))
  expect(await leases(h)).toBe('0')
})
