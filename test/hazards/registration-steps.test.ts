import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { sqlState } from '../../src/runtime/sql-state.ts'
import type { SubscriptionDefinition } from '../../src/store/subscription-store.ts'
import { untilActive } from '../store/contract/helpers.ts'
import { one, subscribe } from '../store/postgres/fixtures.ts'
import { type Hazard, hazard, publish, replaceFunction, withoutRegistrationGuard } from './support.ts'

const subscription = (name: string, eventTypes: readonly string[] | null = null): SubscriptionDefinition => ({
  name,
  streams: null,
  eventTypes,
  orderBy: 'none',
  lanes: 0,
  onDead: 'block',
  maxAttempts: 3,
  startFrom: 'now',
})

const deliveries = ({ db }: Hazard, name: string): Promise<number> =>
  one(
    db.pool,
    `select count(*)::int from outbox_delivery d join outbox_subscription s on s.id = d.subscription_id
      where s.name = $1`,
    [name],
  )

/** A publisher whose transaction reads as of now and has written nothing yet. */
async function beginReading(h: Hazard): Promise<pg.Client> {
  const client = await h.connect('publisher')
  await client.query('begin isolation level repeatable read')
  await client.query('select count(*) from outbox_subscription')
  return client
}

/** Publishes one event and commits. False when it is told to retry the transaction. */
async function publishAndCommit(client: pg.Client): Promise<boolean> {
  try {
    await publish(client, ['a'])
  } catch (error) {
    if (sqlState(error) !== '40001') throw error
    await client.query('rollback')
    return false
  }
  await client.query('commit')
  return true
}

describe('a publisher that inserted before a registration and commits after it', () => {
  test('is found by the sweep', async () => {
    await using h = await hazard()
    const { store } = h.worker('registrar')
    const client = await h.connect('publisher')
    await client.query('begin')
    await publish(client, ['a'])
    await store.register(subscription('sub'))
    await client.query('commit')
    await untilActive(store)
    expect(await deliveries(h, 'sub')).toBe(1)
  })

  test('is missed by a subscription that is active at once', async () => {
    await using h = await hazard()
    const { store } = h.worker('registrar')
    const client = await h.connect('publisher')
    await client.query('begin')
    await publish(client, ['a'])
    await subscribe(h.db)
    await client.query('commit')
    await untilActive(store)
    expect(await deliveries(h, 'sub')).toBe(0)
  })
})

describe('a publisher that reads a snapshot older than a registration', () => {
  test('is told to retry, and its second try reaches the subscription', async () => {
    await using h = await hazard()
    const { store } = h.worker('registrar')
    const client = await beginReading(h)
    await store.register(subscription('sub'))
    await untilActive(store)
    expect(await publishAndCommit(client)).toBe(false)
    await client.query('begin isolation level repeatable read')
    expect(await publishAndCommit(client)).toBe(true)
    expect(await deliveries(h, 'sub')).toBe(1)
  })

  test('is missed when it is let through', async () => {
    await using h = await hazard()
    await withoutRegistrationGuard(h)
    const { store } = h.worker('registrar')
    const client = await beginReading(h)
    await store.register(subscription('sub'))
    await untilActive(store)
    expect(await publishAndCommit(client)).toBe(true)
    expect(await deliveries(h, 'sub')).toBe(0)
  })

  test('reaches the subscription, by retrying if need be, when it had written before', async () => {
    await using h = await hazard()
    const { store } = h.worker('registrar')
    const client = await beginReading(h)
    await client.query('select pg_current_xact_id()')
    await store.register(subscription('sub'))
    if (!(await publishAndCommit(client))) {
      await client.query('begin isolation level repeatable read')
      expect(await publishAndCommit(client)).toBe(true)
    }
    await untilActive(store)
    expect(await deliveries(h, 'sub')).toBe(1)
  })

  /** Two subscriptions are registered, one before and one after its first write; it retries if it is told to. */
  async function registerTwice(h: Hazard): Promise<void> {
    const { store } = h.worker('registrar')
    const client = await beginReading(h)
    await store.register(subscription('one'))
    await untilActive(store)
    await client.query('select pg_current_xact_id()')
    await store.register(subscription('two'))
    if (!(await publishAndCommit(client))) {
      await client.query('begin isolation level repeatable read')
      expect(await publishAndCommit(client)).toBe(true)
    }
    await untilActive(store)
    expect(await deliveries(h, 'two')).toBe(1)
  }

  test('reaches both of two that were registered before and after its first write', async () => {
    await using h = await hazard()
    await registerTwice(h)
    expect(await deliveries(h, 'one')).toBe(1)
  })

  test('is missed by the first of two if only a registration before its first write turns it away', async () => {
    await using h = await hazard()
    await replaceFunction(h, 'outbox_fan_out', (definition) =>
      definition.replace(
        'if not pg_visible_in_snapshot(registered',
        'if registered < pg_current_xact_id() and not pg_visible_in_snapshot(registered',
      ),
    )
    await registerTwice(h)
    expect(await deliveries(h, 'one')).toBe(0)
  })

  test('is not turned away for ever by a registration that was rolled back or came with a restored backup', async () => {
    await using h = await hazard()
    const { store } = h.worker('registrar')
    await store.register(subscription('sub'))
    await untilActive(store)
    for (const xid of [await one<string>(h.db.pool, 'select pg_current_xact_id()::text'), '1000000000000']) {
      await h.db.pool.query(`select setval('outbox_registry_xid', $1)`, [xid])
      const client = await h.connect('publisher')
      await client.query('begin isolation level repeatable read')
      expect(await publishAndCommit(client)).toBe(true)
    }
    expect(await deliveries(h, 'sub')).toBe(2)
  })
})

describe('a joining subscription that is widened while another worker raises its barrier', () => {
  /** Publishes an event of the new type at the worst moment: after the barrier's id was taken, before the widening. */
  async function widenWhile(
    h: Hazard,
    raiseBarrier: () => Promise<{ readonly raised: Promise<unknown> }>,
  ): Promise<void> {
    const { store, pool } = h.worker('widening')
    await store.register(subscription('sub', ['Old']))
    const hold = pool.holdBefore(/^commit/)
    const widening = store.register(subscription('sub', ['Old', 'New']))
    await hold.reached
    const { raised } = await raiseBarrier()
    const client = await h.connect('publisher')
    await client.query('begin')
    await publish(client, ['a'], { type: 'New' })
    hold.go()
    await widening
    await client.query('commit')
    await raised
    await untilActive(store)
  }

  test('misses no event of the new type', async () => {
    await using h = await hazard()
    const { store } = h.worker('raising')
    await widenWhile(h, async () => ({ raised: Promise.resolve(await store.advanceJoining()) }))
    expect(await deliveries(h, 'sub')).toBe(1)
  })

  test('misses one if the barrier waits for the row with its id already taken', async () => {
    await using h = await hazard()
    const client = await h.connect('raising')
    await widenWhile(h, async () => {
      const raised = client.query(
        `update outbox_subscription set barrier = pg_current_xact_id() where state = 'joining' and barrier is null`,
      )
      await h.untilBlocked('raising')
      return { raised }
    })
    expect(await deliveries(h, 'sub')).toBe(0)
  })
})
