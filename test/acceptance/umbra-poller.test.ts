import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createOutbox, type Middleware, type WorkerEvent } from '../../src/index.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { resolveSubscription } from '../../src/worker/resolve-subscription.ts'
import { stoppedInTime } from './stopped-in-time.ts'
import { eventually, SHARING, signal } from './support.ts'
import {
  fail,
  openUmbra,
  POLLER,
  startSubscription,
  type Umbra,
  type UmbraOptions,
  type UmbraSubscription,
  umbraEvents,
} from './umbra-system.ts'

/** Watches how many handlers run at the same time, whoever runs them. */
class Watch {
  readonly order: string[] = []
  most = 0
  #running = 0

  async run(umbra: Umbra, id: string): Promise<void> {
    this.#running += 1
    this.most = Math.max(this.most, this.#running)
    this.order.push(id)
    // Something to wait for, so that a second handler would have its chance.
    for (let n = 0; n < 3; n += 1) await umbra.pool.query('select pg_sleep(0.001)')
    this.#running -= 1
  }
}

function poller(umbra: Umbra, watch: Watch, options: Partial<UmbraOptions> = {}): UmbraSubscription {
  return umbra.outbox.subscription('notification', {
    ...POLLER,
    drain: true,
    pollMs: 20,
    ...options,
    on: { PaymentFailed: (event) => watch.run(umbra, event.eventId) },
  })
}

/** Events of four subscriptions, in turn. */
async function failInTurn(umbra: Umbra, rounds: number): Promise<readonly string[]> {
  const subscriptions = Array.from({ length: 4 }, () => randomUUID())
  const ids: string[] = []
  for (let round = 0; round < rounds; round += 1) {
    for (const id of subscriptions) ids.push(...(await fail(umbra, id, 1)))
    // Two of one aggregate in a row: a poller that takes turns between aggregates would be found out.
    ids.push(...(await fail(umbra, subscriptions[0] as string, 2)))
  }
  return ids
}

describe('the poller of umbra', () => {
  test("U1 the seed's own numbers are what the options say", () => {
    const subscription = { name: 'poller', options: { ...POLLER, on: { PaymentFailed: () => {} } } }
    const resolved = resolveSubscription(umbraEvents, subscription)
    expect(resolved).toMatchObject({ pollMs: 2_000, batchSize: 50, drain: false, concurrency: 1 })
    expect(resolved.definition).toMatchObject({ maxAttempts: 10, lanes: 1, orderBy: 'total' })
  })

  test('U1 it takes one batch of 50 every 2 seconds', async () => {
    await using umbra = await openUmbra()
    const watch = new Watch()
    const seed = poller(umbra, watch, POLLER)
    await (await umbra.run([seed])).stop()
    const clock = new ManualClock()
    const claims: unknown[] = []
    const note = (event: WorkerEvent): void => {
      if (event.kind === 'claimed') claims.push([clock.monotonicMs(), event.count])
    }
    const store = postgresStore({ pool: umbra.pool, schema: umbra.schema })
    const outbox = createOutbox({ store, events: umbraEvents, clock })
    await fail(umbra, randomUUID(), 70)
    const worker = outbox.worker([seed], { leaseMs: 3_600_000, listen: false, observers: [note] })
    await using _ = stoppedInTime(worker, clock)
    await worker.start()
    const done = (count: number): Promise<void> =>
      eventually(
        `${count} are done`,
        async () => (await umbra.count('outbox_delivery', "status = 'DONE'")) === count,
      )
    await done(50)
    await clock.advance(1_999)
    expect(claims).toEqual([[0, 50]])
    await clock.advance(1)
    await done(70)
    expect(claims).toEqual([
      [0, 50],
      [2_000, 20],
    ])
  })

  test('U1 one handler at a time over two workers, in strict order of insertion', async () => {
    await using umbra = await openUmbra()
    const watch = new Watch()
    await umbra.runElsewhere([poller(umbra, watch)])
    await umbra.runElsewhere([poller(umbra, watch)])
    const ids = await failInTurn(umbra, 6)
    await umbra.untilSettled()
    expect(watch.order).toEqual(ids)
    expect(watch.most).toBe(1)
  })

  test('U1 also while one worker hands over to the other', async () => {
    await using umbra = await openUmbra()
    const watch = new Watch()
    const handled = { first: 0, second: 0 }
    const ofWorker = (which: keyof typeof handled): UmbraSubscription => {
      const count: Middleware = (next) => async (event, ctx) => {
        handled[which] += 1
        await next(event, ctx)
      }
      return poller(umbra, watch, { middleware: [count] })
    }
    const first = await umbra.runElsewhere([ofWorker('first')], SHARING)
    const ids: string[] = []
    // Until it is seen to be handed over, and a little longer: the one that stops has always something to do.
    const publishing = (async () => {
      while (handled.second === 0) ids.push(...(await failInTurn(umbra, 1)))
      ids.push(...(await failInTurn(umbra, 1)))
    })()
    await eventually('the first is at work', () => watch.order.length > 5)
    await umbra.runElsewhere([ofWorker('second')], SHARING)
    await Promise.all([first.stop(), publishing])
    await umbra.untilSettled()
    expect(watch.order).toEqual(ids)
    expect(watch.most).toBe(1)
    expect(handled.first).toBeGreaterThan(5)
    expect(handled.first).toBeLessThan(ids.length)
  })

  test('U1 one handler at a time also where only the order of each aggregate matters', async () => {
    await using umbra = await openUmbra()
    const watch = new Watch()
    const relaxed = () => poller(umbra, watch, { order: 'aggregate' })
    await umbra.runElsewhere([relaxed()])
    await umbra.runElsewhere([relaxed()])
    const ids = await failInTurn(umbra, 6)
    await umbra.untilSettled()
    expect(watch.most).toBe(1)
    expect(watch.order.toSorted()).toEqual(ids.toSorted())
  })

  test('U1 back-off 1 min, 5 min, 15 min, then 1 h again and again; dead at the tenth failure', async () => {
    await using umbra = await openUmbra()
    const attempts: number[] = []
    await umbra.run([
      umbra.outbox.subscription('licensing', {
        ...POLLER,
        drain: true,
        pollMs: 20,
        on: {
          SubscriptionStarted: (_event, ctx) => {
            attempts.push(ctx.attempt)
            throw new Error('licensing is down')
          },
        },
      }),
    ])
    const eventId = await startSubscription(umbra)
    for (let failures = 1; failures < 10; failures += 1) {
      await eventually('it has failed', () => umbra.toldOf('retried').length === failures)
      await umbra.passRetryDelays()
    }
    await umbra.untilStatus(eventId, 'DEAD')
    const minute = 60_000
    expect(umbra.toldOf('retried').map(({ delayMs }) => delayMs / minute)).toEqual([
      1, 5, 15, 60, 60, 60, 60, 60, 60,
    ])
    expect(attempts).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    expect(await umbra.outbox.deadLetters.count()).toBe(1)
  })
})

describe('order in umbra', () => {
  test('U4 events of one aggregate arrive in insertion order, whatever the other aggregates do', async () => {
    await using umbra = await openUmbra()
    const arrived = new Map<string, string[]>()
    const notification = () =>
      umbra.outbox.subscription('notification', {
        order: 'aggregate',
        on: {
          PaymentFailed: async (event) => {
            await umbra.pool.query('select pg_sleep(0.001)')
            arrived.set(event.aggregateId, [...(arrived.get(event.aggregateId) ?? []), event.eventId])
          },
        },
      })
    await umbra.runElsewhere([notification()], SHARING)
    await umbra.runElsewhere([notification()], SHARING)
    await umbra.untilLanesAreShared(2)
    const aggregates = Array.from({ length: 8 }, () => randomUUID())
    const published = await Promise.all(aggregates.map((id) => fail(umbra, id, 12)))
    await umbra.untilSettled()
    for (const [n, id] of aggregates.entries()) expect(arrived.get(id)).toEqual(published[n])
  })

  test('U4 also when one of them is retried: the later ones wait, other aggregates do not', async () => {
    await using umbra = await openUmbra()
    const runs: string[] = []
    const [retried, other] = [randomUUID(), randomUUID()]
    const notification = () =>
      umbra.outbox.subscription('notification', {
        order: 'aggregate',
        retry: POLLER.retry,
        on: {
          PaymentFailed: (event, ctx) => {
            const isBad = event.aggregateId === retried && event.payload.retry_count === 2 && ctx.attempt < 3
            runs.push(
              `${event.aggregateId === retried ? 'a' : 'b'}${event.payload.retry_count}${isBad ? ' fails' : ''}`,
            )
            if (isBad) throw new Error('the bot could not send a message')
          },
        },
      })
    await umbra.runElsewhere([notification()], SHARING)
    await umbra.runElsewhere([notification()], SHARING)
    await umbra.untilLanesAreShared(2)
    await fail(umbra, retried, 4)
    await fail(umbra, other, 4)
    for (const failures of [1, 2]) {
      await eventually('it has failed', () => umbra.toldOf('retried').length === failures)
      await eventually('the other aggregate is through', () => runs.includes('b4'))
      expect(runs.filter((run) => run === 'a3' || run === 'a4')).toEqual([])
      await umbra.passRetryDelays()
    }
    await umbra.untilSettled()
    expect(runs.filter((run) => run.startsWith('a'))).toEqual([
      'a1',
      'a2 fails',
      'a2 fails',
      'a2',
      'a3',
      'a4',
    ])
    expect(runs.filter((run) => run.startsWith('b'))).toEqual(['b1', 'b2', 'b3', 'b4'])
  })

  test('U4 and when one of them dies: the later ones wait for a person, then go on in order', async () => {
    await using umbra = await openUmbra()
    const runs: number[] = []
    const repaired = signal()
    let isRepaired = false
    void repaired.happened.then(() => {
      isRepaired = true
    })
    await umbra.run([
      umbra.outbox.subscription('notification', {
        order: 'aggregate',
        maxAttempts: 1,
        on: {
          PaymentFailed: (event) => {
            if (event.payload.retry_count === 2 && !isRepaired) throw new Error('no such channel')
            runs.push(event.payload.retry_count)
          },
        },
      }),
    ])
    const [, second = ''] = await fail(umbra, randomUUID(), 4)
    await umbra.untilStatus(second, 'DEAD')
    await fail(umbra, randomUUID(), 1)
    await eventually('another aggregate goes on', () => runs.filter((n) => n === 1).length === 2)
    expect(runs).toEqual([1, 1])
    repaired.happen()
    await repaired.happened
    const [letter] = await umbra.outbox.deadLetters.list()
    await umbra.outbox.deadLetters.retry(letter?.id ?? '', { operator: 'ops' })
    await umbra.untilSettled()
    expect(runs).toEqual([1, 1, 2, 3, 4])
  })
})
