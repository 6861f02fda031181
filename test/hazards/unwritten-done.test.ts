import { describe, expect, test } from 'vitest'
import type { Settled } from '../../src/delivery/delivery.ts'
import type { WorkerEvent } from '../../src/observe/worker-events.ts'
import { deferred } from '../queue/fakes.ts'
import { claimLanes, DONE, join, settled, takeLanes } from '../store/contract/helpers.ts'
import { column } from '../store/postgres/fixtures.ts'
import { bePatient, comes } from '../support/patience.ts'
import { postgresOutbox } from '../worker/postgres-outbox.ts'
import { lock } from './locking.ts'
import { type Hazard, hazard, publish } from './support.ts'

bePatient()

const statuses = ({ db }: Hazard): Promise<string[]> =>
  column(db.pool, 'select status from outbox_delivery order by id')

const positionsOf = (results: readonly Settled[]): readonly string[] =>
  results.map(({ delivery }) => delivery.position)

/** Five results of two claims. */
async function claimedResults(h: Hazard) {
  const { store, pool } = h.worker('w')
  const sub = await join(store, { orderBy: 'aggregate', lanes: 2 })
  const lanes = await takeLanes(store, sub, 'w')
  await publish(h.db.pool, ['a', 'a', 'b'])
  const first = await claimLanes(store, sub, 'w', lanes)
  await publish(h.db.pool, ['a', 'b'])
  const claimed = [...first, ...(await claimLanes(store, sub, 'w', lanes))]
  return { store, pool, sub, results: claimed.map((delivery) => settled(delivery, DONE)) }
}

describe('a result of an ordered subscription whose lease has ended', () => {
  test('keeps later ones of its key from being DONE before it, of whichever claim, and no others', async () => {
    await using h = await hazard()
    const { store, sub, results } = await claimedResults(h)
    await h.db.pool.query(
      `update outbox_delivery set locked_until = locked_until - interval '1 day' where id = 1`,
    )
    await h.db.pool.query(`update outbox_lease set until = until - interval '1 day'`)
    expect((await store.recover([sub.id])).returned).toEqual(new Map([[sub.id, 1]]))
    const ofTwoClaims = results.filter(({ delivery }) => ['1', '4'].includes(delivery.position))
    expect(positionsOf((await store.settle(ofTwoClaims)).busy)).toEqual(['4'])
    const { lost, over, busy } = await store.settle(results)
    expect(lost.map(({ position }) => position)).toEqual(['1'])
    expect(over).toEqual([])
    expect(positionsOf(busy)).toEqual(['2', '4'])
    expect(await statuses(h)).toEqual(['PENDING', 'PROCESSING', 'DONE', 'PROCESSING', 'DONE'])
  })

  test('keeps nothing from being DONE if it ended because the result was written before', async () => {
    await using h = await hazard()
    const { store, results } = await claimedResults(h)
    await store.settle(results.slice(0, 1))
    const { over, busy } = await store.settle(results)
    expect(over.map(({ position }) => position)).toEqual(['1'])
    expect(busy).toEqual([])
    expect(await statuses(h)).toEqual(['DONE', 'DONE', 'DONE', 'DONE', 'DONE'])
  })
})

describe('a result of an ordered subscription whose row somebody has locked', () => {
  /** Five results of two claims, of which the first is locked. */
  async function results(h: Hazard) {
    const claimed = await claimedResults(h)
    return { ...claimed, ...(await lock(h, 1)) }
  }

  test('keeps later ones of its key from being DONE before it, of whichever claim, and no others', async () => {
    await using h = await hazard()
    const { store, unlock, results: batch } = await results(h)
    const { busy } = await store.settle(batch)
    expect(positionsOf(busy)).toEqual(['1', '2', '4'])
    expect(await statuses(h)).toEqual(['PROCESSING', 'PROCESSING', 'DONE', 'PROCESSING', 'DONE'])
    await unlock()
    expect((await store.settle(busy)).busy).toEqual([])
    expect(await statuses(h)).toEqual(['DONE', 'DONE', 'DONE', 'DONE', 'DONE'])
  })

  test('is passed by them if only rows are looked at, and not their keys', async () => {
    await using h = await hazard()
    const { store, pool, results: batch } = await results(h)
    pool.rewrite = (text) => text.replace('s.key = t.key and s.id < t.id', 'false')
    await store.settle(batch)
    expect(await statuses(h)).toEqual(['PROCESSING', 'DONE', 'DONE', 'DONE', 'DONE'])
  })
})

describe('a worker whose result is locked', () => {
  /** A worker of an ordered subscription, and a person who locks the delivery of the first event while it is handled. */
  async function locked(complete: boolean) {
    const postgres = await postgresOutbox()
    const { outbox, pool } = postgres
    const ran: string[] = []
    const told: WorkerEvent[] = []
    const person = await pool.connect()
    const isLocked = deferred()
    const worker = outbox.worker(
      [
        outbox.subscription('ordered', {
          order: 'aggregate',
          lanes: 1,
          pollMs: 20,
          on: {
            OrderPlaced: async ({ payload, aggregateId }, ctx) => {
              ran.push(`${aggregateId}${payload.n}/${ctx.attempt}`)
              if (payload.n === 1) {
                await person.query('begin; select from outbox_delivery order by id limit 1 for update')
                isLocked.resolve()
              } else if (complete) await outbox.inTransaction(pool, (tx) => ctx.complete(tx))
            },
          },
        }),
      ],
      { observers: [(event) => void told.push(event)] },
    )
    await worker.active()
    const states = async (): Promise<string> =>
      (await column(pool, 'select status from outbox_delivery order by id')).join(' ')
    const become = (expected: string): Promise<void> =>
      comes(expected, async () => (await states()) === expected)
    const unlock = async (): Promise<void> => {
      await person.query('rollback')
      person.release()
    }
    return { ...postgres, worker, ran, told, states, become, unlock, isLocked: isLocked.promise }
  }

  test('runs nothing more of its key, goes on with others, and runs each once when it is let go', async () => {
    const s = await locked(false)
    await s.place('a', 'b')
    await s.isLocked
    // Once a later result is written, the worker knows that the first could not be. Before, the next of its key may start.
    await s.place('c')
    await s.become('PROCESSING DONE DONE')
    await s.place('a', 'b', 'a')
    await s.become('PROCESSING DONE DONE PENDING PENDING DONE')
    expect(s.ran).toEqual(['a1/1', 'b2/1', 'c3/1', 'b5/1'])
    await s.unlock()
    await s.become('DONE DONE DONE DONE DONE DONE')
    expect(s.ran.filter((text) => text.startsWith('a'))).toEqual(['a1/1', 'a4/1', 'a6/1'])
    await s.worker.stop()
    await s[Symbol.asyncDispose]()
  })

  test('completes no later event of its key in its handler, and charges none for that', async () => {
    const s = await locked(true)
    await s.place('a', 'a', 'b')
    await s.become('PROCESSING PENDING DONE')
    expect(s.told.filter(({ kind }) => kind === 'released')).toMatchObject([{ why: 'interrupted' }])
    await s.unlock()
    await s.become('DONE DONE DONE')
    expect(s.ran.filter((text) => text.startsWith('a'))).toEqual(['a1/1', 'a2/1', 'a2/1'])
    await s.worker.stop()
    await s[Symbol.asyncDispose]()
  })

  test('stops in time, and leaves nothing DONE before it', async () => {
    const s = await locked(false)
    await s.place('a', 'a', 'b')
    await comes('the other key is done', async () => (await s.states()).endsWith('DONE'))
    await s.worker.stop()
    expect(await s.states()).toMatch(/^PROCESSING (PROCESSING|PENDING) DONE$/)
    await s.unlock()
    await s[Symbol.asyncDispose]()
  })
})
