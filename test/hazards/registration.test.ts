import { describe, expect, test } from 'vitest'
import { subscribe } from '../store/postgres/fixtures.ts'
import { PublisherLoad } from './publisher-load.ts'
import { type Register, registerUnderLoad } from './registration-rounds.ts'
import { type Hazard, hazard, withoutRegistrationGuard } from './support.ts'

const SEED = 20_261_116

const ROUNDS = 200
const OVERLAPPING_ROUNDS = 80
/** A form that misses nothing in so many rounds is not broken. */
const MOST_ROUNDS = 1_000

/** As a worker does it: registers, then moves what joins on until nothing joins. */
function registerProperly(h: Hazard): Register {
  const { store } = h.worker('registrar')
  return async (definition) => {
    const { id } = await store.register(definition)
    return {
      id,
      async join() {
        while ((await store.advanceJoining()).length > 0);
      },
    }
  }
}

/** As one would do it without thinking of transactions that are under way. */
function registerNaively(h: Hazard): Register {
  return async ({ name, streams, orderBy }) => {
    const id = await subscribe(h.db, { name, streamLike: streams, orderBy })
    return { id, join: () => Promise.resolve() }
  }
}

describe('a subscription registered while publishers run', () => {
  test('misses no event and gets none from before, from now, the beginning or a time, ordered or not', async () => {
    await using h = await hazard()
    const verdict = await registerUnderLoad(h, {
      rounds: ROUNDS,
      seed: SEED,
      register: registerProperly(h),
    })
    expect(verdict).toMatchObject({ rounds: ROUNDS, missed: 0, unwanted: 0 })
    // Something in nearly every round, or it would show nothing.
    expect(verdict.expected).toBeGreaterThan(2 * ROUNDS)
  })

  test('misses none either when many are registered within one transaction of a publisher', async () => {
    await using h = await hazard()
    const verdict = await registerUnderLoad(h, {
      rounds: OVERLAPPING_ROUNDS,
      seed: SEED,
      register: registerProperly(h),
      overlapping: true,
    })
    expect(verdict).toMatchObject({ rounds: OVERLAPPING_ROUNDS, missed: 0, unwanted: 0 })
    expect(verdict.expected).toBeGreaterThan(OVERLAPPING_ROUNDS)
  })

  test('without joining it misses events', async () => {
    await using h = await hazard()
    const verdict = await registerUnderLoad(h, {
      rounds: MOST_ROUNDS,
      seed: SEED,
      register: registerNaively(h),
      // It does nothing to get what was there before: that it misses that would show nothing.
      startsFrom: ['now'],
      untilMissed: true,
    })
    expect(verdict.missed).toBeGreaterThan(0)
  })

  test('without turning stale snapshots away it misses events', async () => {
    await using h = await hazard()
    await withoutRegistrationGuard(h)
    const verdict = await registerUnderLoad(h, {
      rounds: MOST_ROUNDS,
      seed: SEED,
      register: registerProperly(h),
      untilMissed: true,
    })
    expect(verdict.missed).toBeGreaterThan(0)
  })
})

describe('a subscription widened while publishers run', () => {
  test('gets every event of the wider selection from then on, and none of what it had is missed', async () => {
    await using h = await hazard()
    const { store } = h.worker('registrar')
    const load = new PublisherLoad(h, SEED)
    const types = Array.from({ length: 20 }, (_, n) => `Type${n}`)
    load.types = types
    await load.start()
    const widenedMs = new Map<string, number>()
    for (const [n, type] of types.entries()) {
      await store.register({
        name: 'sub',
        streams: null,
        eventTypes: types.slice(0, n + 1),
        orderBy: 'none',
        lanes: 0,
        onDead: 'block',
        maxAttempts: 3,
        startFrom: 'now',
      })
      widenedMs.set(type, performance.now())
      await load.nextTransactions()
      while ((await store.advanceJoining()).length > 0);
    }
    await load.nextTransactions()
    await load.stop()
    const { rows } = await h.db.pool.query<{ id: string }>('select event_id as id from outbox_delivery')
    const delivered = new Set(rows.map(({ id }) => id))
    const due = load.published.filter(
      ({ type, commitSentMs }) => commitSentMs > (widenedMs.get(type) ?? Number.POSITIVE_INFINITY),
    )
    expect(due.length).toBeGreaterThan(100)
    expect(due.filter(({ eventId }) => !delivered.has(eventId))).toEqual([])
    expect(rows.length).toBe(delivered.size)
  })
})
