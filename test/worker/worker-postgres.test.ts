import { describe, expect, test } from 'vitest'
import type { WorkerEvent } from '../../src/observe/worker-events.ts'
import { NonRetryableError } from '../../src/runtime/errors.ts'
import { seededRandom } from '../../src/runtime/random.ts'
import { fixed } from '../../src/settle/backoff.ts'
import { createOutboxRepository } from '../../src/worker/outbox-repository.ts'
import { subscription } from '../../src/worker/subscription.ts'
import { eventually } from '../support/program.ts'
import { postgresOutbox } from './postgres-outbox.ts'
import { Referee } from './referee.ts'

describe('a worker on PostgreSQL', () => {
  test('U3 runs handlers whose further events are delivered in turn', async () => {
    await using setup = await postgresOutbox()
    const { outbox, pool, place } = setup
    const paid: number[] = []
    await using worker = outbox.worker([
      subscription('billing', {
        on: {
          OrderPlaced: async (event, ctx) => {
            const { aggregateId, payload } = event
            await ctx.once(pool, (tx) => ctx.publish(tx, 'OrderPaid', { aggregateId, payload }))
          },
          OrderPaid: (event) => void paid.push(event.payload.n),
        },
      }),
    ])
    await worker.start()
    await place(...Array.from({ length: 20 }, (_, n) => n))
    await eventually('all are paid', () => paid.length === 20)
    await worker.stop()
    expect(paid.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1))
    expect((await outbox.status())[0]?.counts).toMatchObject({ DONE: 40, PENDING: 0, PROCESSING: 0 })
  })

  test('U4 keeps the order of every key with several workers, retries, and one that leaves in the middle', async () => {
    await using setup = await postgresOutbox()
    const { outbox, place } = setup
    const random = seededRandom(7)
    const referee = new Referee()
    const ordered = (worker: number) =>
      subscription<typeof outbox.events, object>('ordered', {
        order: 'aggregate',
        lanes: 8,
        concurrency: 4,
        batchSize: 20,
        pollMs: 50,
        retry: fixed(15),
        maxAttempts: 1_000,
        on: {
          OrderPlaced: async (event) => {
            const step = { key: event.aggregateId, position: String(event.sequence) }
            referee.start(step, worker)
            await new Promise((resolve) => setTimeout(resolve, random() * 4))
            const succeeded = random() > 0.15
            referee.end(step, succeeded)
            if (!succeeded) throw new Error('not this time')
          },
        },
      })
    const workers = [0, 1, 2].map((index) => outbox.worker([ordered(index)], { leaseMs: 1_500 }))
    await Promise.all(workers.map((worker) => worker.active()))
    const keys = Array.from({ length: 12 }, (_, key) => `order-${key}`)
    for (let round = 0; round < 20; round += 1) {
      for (const key of keys) referee.publish({ key, position: String(round + 1) })
      await place(...keys)
      if (round === 10) void workers[0]?.stop()
    }
    // Not as soon as so many were handled: one whose lease was lost on a busy machine is handled again.
    const done = async (): Promise<boolean> => (await outbox.status())[0]?.counts.DONE === 240
    await eventually('all are done', done)
    await Promise.all(workers.map((worker) => worker.stop()))
    expect(referee.faults).toEqual([])
    expect((await outbox.status())[0]?.counts).toEqual({ DONE: 240, PENDING: 0, PROCESSING: 0, DEAD: 0 })
  })

  test('keeps later events of a key behind a dead one until a person decides', async () => {
    await using setup = await postgresOutbox()
    const { outbox, place } = setup
    const seen: number[] = []
    let isBroken = true
    await using worker = outbox.worker([
      subscription('ordered', {
        order: 'aggregate',
        pollMs: 50,
        on: {
          OrderPlaced: (event) => {
            if (event.aggregateId === 'a' && isBroken) throw new NonRetryableError('no')
            seen.push(event.payload.n)
          },
        },
      }),
    ])
    await worker.active()
    await place('a', 'a', 'b')
    await eventually('b is through', () => seen.includes(3))
    await eventually('a is dead', async () => (await outbox.deadLetters.count()) === 1)
    expect(seen).toEqual([3])
    isBroken = false
    const [letter] = await outbox.deadLetters.list()
    await outbox.deadLetters.retry(letter?.id ?? '', { operator: 'kim' })
    await eventually('a goes on', () => seen.length === 3)
    expect(seen).toEqual([3, 1, 2])
  })

  test('stands still while its subscription is paused', async () => {
    await using setup = await postgresOutbox()
    const { outbox, place } = setup
    let runs = 0
    await using worker = outbox.worker([
      subscription('billing', { pollMs: 20, on: { OrderPlaced: () => void (runs += 1) } }),
    ])
    await worker.start()
    await outbox.pause('billing', { operator: 'kim' })
    await place('a')
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(runs).toBe(0)
    await outbox.resume('billing', { operator: 'kim' })
    await eventually('it runs', () => runs === 1)
  })

  test('takes a delivery that its handler completed in its own transaction for done, not for lost', async () => {
    await using setup = await postgresOutbox()
    const { outbox, pool, place } = setup
    const observed: WorkerEvent[] = []
    await using worker = outbox.worker(
      [
        subscription('billing', {
          on: { OrderPlaced: (_, ctx) => outbox.inTransaction(pool, (tx) => ctx.complete(tx)) },
        }),
      ],
      { observers: [(event) => void observed.push(event)] },
    )
    await worker.start()
    await place('a')
    await eventually('it is told', () => observed.some(({ kind }) => kind === 'handled'))
    expect(observed.filter(({ kind }) => kind === 'leaseLost')).toEqual([])
    expect((await outbox.status())[0]?.counts.DONE).toBe(1)
  })

  test('I2 serves the repository port of the RFC', async () => {
    await using setup = await postgresOutbox()
    const { outbox, store, pool } = setup
    await using repository = createOutboxRepository({
      outbox,
      store,
      subscription: 'poller',
      maxAttempts: 2,
      retry: fixed(1),
    })
    expect(await repository.findPending(10)).toEqual([])
    const ids = await outbox.inTransaction(pool, async (tx) => [
      await repository.insert(tx, { eventType: 'OrderPaid', aggregateId: 't:1', payload: { n: 1 } }),
      await repository.insert(tx, { eventType: 'OrderPaid', aggregateId: 't:2', payload: { n: 2 } }),
    ])
    const found = await repository.findPending(10)
    expect(found.map(({ id, status, retryCount }) => [id, status, retryCount])).toEqual(
      ids.map((id) => [id, 'PENDING', 0]),
    )
    expect(await repository.findPending(10)).toEqual([])
    const [first = '', second = ''] = ids
    await repository.markProcessed([first])
    await repository.markFailed(second, 'no')
    await expect(repository.markProcessed([first])).rejects.toThrow('in hand')
    await eventually('it is due again', async () => (await repository.findPending(10))[0]?.retryCount === 1)
    await repository.markFailed(second, 'no again')
    expect(await outbox.deadLetters.count()).toBe(1)
    expect((await outbox.status())[0]?.counts).toMatchObject({ DONE: 1, DEAD: 1 })
  })
})
