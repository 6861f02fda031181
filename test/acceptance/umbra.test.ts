import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { NonRetryableError, type OutboxEvent } from '../../src/index.ts'
import { deliveredTimes, eventually } from './support.ts'
import {
  insertLicense,
  openUmbra,
  startSubscription,
  type Umbra,
  type UmbraSubscription,
} from './umbra-system.ts'

const SOON = { retry: { delayMs: () => 0 }, pollMs: 20 } as const

/** Audit takes everything, once. */
function audit(umbra: Umbra): UmbraSubscription {
  return umbra.outbox.subscription('audit', {
    on: {
      '*': async (event) =>
        void (await umbra.pool.query(
          'insert into audit_events values ($1, $2, $3) on conflict (outbox_event_id) do nothing',
          [event.eventId, event.type, event.payload],
        )),
    },
  })
}

describe('subscribers of umbra', () => {
  test('U2 one event reaches each of its subscribers, and one that fails does not make the others run again', async () => {
    await using umbra = await openUmbra()
    const runs: Record<string, number> = { licensing: 0, notification: 0, audit: 0 }
    await umbra.run(
      Object.keys(runs).map((name) =>
        umbra.outbox.subscription(name, {
          ...SOON,
          maxAttempts: 4,
          on: {
            SubscriptionStarted: () => {
              runs[name] = (runs[name] ?? 0) + 1
              if (name === 'notification') throw new Error('Discord is away')
            },
          },
        }),
      ),
    )
    const eventId = await startSubscription(umbra)
    await umbra.untilSettled()
    expect(runs).toEqual({ licensing: 1, notification: 4, audit: 1 })
    expect((await umbra.delivery(eventId, 'licensing'))?.status).toBe('DONE')
    expect((await umbra.delivery(eventId, 'notification'))?.status).toBe('DEAD')
    expect((await umbra.delivery(eventId, 'audit'))?.status).toBe('DONE')
  })

  test('U2 a re-drive runs the failed subscriber only', async () => {
    await using umbra = await openUmbra()
    const runs: string[] = []
    let isAway = true
    await umbra.run([
      umbra.outbox.subscription('licensing', {
        on: { SubscriptionStarted: () => void runs.push('licensing') },
      }),
      umbra.outbox.subscription('notification', {
        on: {
          SubscriptionStarted: () => {
            runs.push('notification')
            if (isAway) throw new NonRetryableError('Discord is away')
          },
        },
      }),
    ])
    const eventId = await startSubscription(umbra)
    await umbra.untilSettled()
    isAway = false
    const [letter] = await umbra.outbox.deadLetters.list()
    expect(letter).toMatchObject({ eventId, subscription: 'notification' })
    await umbra.outbox.deadLetters.retry(letter?.id ?? '', { operator: 'ops' })
    await umbra.untilStatus(eventId, 'DONE', 'notification')
    expect(runs.toSorted()).toEqual(['licensing', 'notification', 'notification'])
  })

  test('U2 a slow subscriber does not hold the others up', async () => {
    await using umbra = await openUmbra()
    const audited: string[] = []
    await umbra.run([
      umbra.outbox.subscription('notification', { on: { SubscriptionStarted: () => new Promise(() => {}) } }),
      umbra.outbox.subscription('audit', { on: { '*': (event) => void audited.push(event.eventId) } }),
    ])
    const ids = [await startSubscription(umbra), await startSubscription(umbra)]
    await eventually('both are audited', () => audited.length === 2)
    expect(audited.toSorted()).toEqual(ids.toSorted())
  })
})

describe('chains of umbra', () => {
  /** Licensing: a licence and the news of it, in the handler's own transaction. */
  function licensing(umbra: Umbra, failures = 0): UmbraSubscription {
    return umbra.outbox.subscription('licensing', {
      ...SOON,
      on: {
        SubscriptionStarted: async (event, ctx) => {
          await ctx.once(umbra.pool, async (tx) => {
            const license_id = await insertLicense(tx, event.payload)
            const { guild_id, plan_code } = event.payload
            const payload = { license_id, guild_id, plan_code }
            await ctx.publish(tx, 'LicenseGranted', { aggregateId: license_id, payload })
            if (ctx.attempt <= failures) throw new Error('the connection broke')
          })
        },
      },
    })
  }

  test('U3 SubscriptionStarted leads to LicenseGranted and both to the audit, each caused by the one before', async () => {
    await using umbra = await openUmbra()
    const seen = new Map<string, OutboxEvent>()
    await umbra.run([
      licensing(umbra),
      audit(umbra),
      umbra.outbox.subscription('watch', { on: { '*': (event) => void seen.set(event.type, event) } }),
    ])
    const startedId = await umbra.outbox.inTransaction(umbra.pool, (tx) =>
      umbra.outbox.publish(tx, 'SubscriptionStarted', {
        aggregateId: 'sub-1',
        payload: { subscription_id: randomUUID(), guild_id: 'guild-1', plan_code: 'PRO' },
        traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
      }),
    )
    await eventually('the chain is at its end', () => seen.size === 2)
    await umbra.untilSettled()
    const granted = seen.get('LicenseGranted')
    expect(granted?.headers).toMatchObject({
      causationId: startedId,
      correlationId: startedId,
      traceparent: seen.get('SubscriptionStarted')?.headers['traceparent'],
    })
    const license = await umbra.value<string>('select id from licenses')
    expect(granted).toMatchObject({
      aggregateId: license,
      payload: { license_id: license, plan_code: 'PRO' },
    })
    expect(await umbra.rows('select event_type from audit_events order by 1')).toEqual([
      { event_type: 'LicenseGranted' },
      { event_type: 'SubscriptionStarted' },
    ])
  })

  test('U3 a subscriber whose transaction is rolled back has published nothing', async () => {
    await using umbra = await openUmbra()
    await umbra.run([licensing(umbra, 2), audit(umbra)])
    await startSubscription(umbra)
    await eventually('the licence is granted', async () => (await umbra.count('licenses')) === 1)
    await umbra.untilSettled()
    const licensed = () => umbra.toldOf('handled').filter((event) => event.subscription === 'licensing')
    await eventually('it is told', () => licensed().length > 0)
    expect(licensed()).toMatchObject([{ attempt: 3 }])
    expect(await umbra.count('outbox_event', "event_type = 'LicenseGranted'")).toBe(1)
    expect(await umbra.count('audit_events')).toBe(2)
  })

  test('U3 a subscriber cannot publish past the outbox: without a transaction it is refused', async () => {
    await using umbra = await openUmbra()
    await umbra.run([
      umbra.outbox.subscription('licensing', {
        on: {
          SubscriptionStarted: async (_event, ctx) => {
            const payload = { license_id: 'l', guild_id: 'g', plan_code: 'PRO' }
            // @ts-expect-error a pool is no transaction
            await ctx.publish(umbra.pool, 'LicenseGranted', { aggregateId: 'l', payload })
          },
        },
      }),
    ])
    await startSubscription(umbra)
    await umbra.untilSettled()
    expect(await umbra.outbox.deadLetters.list()).toMatchObject([{ errorCode: 'NOT_IN_TRANSACTION' }])
    expect(await umbra.count('outbox_event', "event_type = 'LicenseGranted'")).toBe(0)
  })
})

describe('idempotency of umbra', () => {
  test('U7 conditional update: expires_at is the greatest, however often and in whatever order payments arrive', async () => {
    await using umbra = await openUmbra()
    const subscriptionId = randomUUID()
    await umbra.pool.query('insert into licenses (id, subscription_id, plan_code) values ($1, $2, $3)', [
      randomUUID(),
      subscriptionId,
      'PRO',
    ])
    const applied: string[] = []
    await umbra.run([
      umbra.outbox.subscription('licensing', {
        ...SOON,
        middleware: [deliveredTimes(3)],
        on: {
          PaymentSucceeded: async (event) => {
            const { subscription_id, new_period_end } = event.payload
            await umbra.pool.query(
              'update licenses set expires_at = greatest(expires_at, $2) where subscription_id = $1',
              [subscription_id, new_period_end],
            )
            applied.push(new_period_end)
          },
        },
      }),
    ])
    for (const end of ['2026-06-01T00:00:00Z', '2026-05-01T00:00:00Z']) {
      const payload = { subscription_id: subscriptionId, attempt_id: randomUUID(), new_period_end: end }
      await umbra.publish('PaymentSucceeded', { aggregateId: subscriptionId, payload })
    }
    await umbra.untilSettled()
    expect(applied).toHaveLength(6)
    expect(await umbra.value<Date>('select expires_at from licenses')).toEqual(
      new Date('2026-06-01T00:00:00Z'),
    )
  })

  test('U7 event-id de-duplication: audit_events.outbox_event_id is UNIQUE', async () => {
    await using umbra = await openUmbra()
    const twice = audit(umbra)
    await umbra.run([{ ...twice, options: { ...twice.options, ...SOON, middleware: [deliveredTimes(3)] } }])
    const ids = [await startSubscription(umbra), await startSubscription(umbra)]
    await umbra.untilSettled()
    expect(await umbra.count('outbox_delivery', 'attempt_count = 3')).toBe(2)
    const audited = await umbra.rows<{ outbox_event_id: string }>('select outbox_event_id from audit_events')
    expect(audited.map((row) => row.outbox_event_id).toSorted()).toEqual(ids.toSorted())
  })

  test('U7 event-id de-duplication by the inbox: the effect and the record of it commit together', async () => {
    await using umbra = await openUmbra()
    await umbra.run([
      umbra.outbox.subscription('licensing', {
        ...SOON,
        middleware: [deliveredTimes(3)],
        on: {
          SubscriptionStarted: async (event, ctx) =>
            void (await ctx.once(umbra.pool, (tx) => insertLicense(tx, event.payload))),
        },
      }),
    ])
    await startSubscription(umbra)
    await umbra.untilSettled()
    expect(await umbra.count('outbox_delivery', 'attempt_count = 3')).toBe(1)
    expect(await umbra.count('licenses')).toBe(1)
    expect(await umbra.count('outbox_inbox', "subscription = 'licensing'")).toBe(1)
  })

  test('U7 natural: cancelling what is cancelled is a no-op, also after the worker vanished half way', async () => {
    await using umbra = await openUmbra()
    const subscriptionId = randomUUID()
    let runs = 0
    const billing = () =>
      umbra.outbox.subscription('billing', {
        ...SOON,
        middleware: [deliveredTimes(2)],
        on: {
          SubscriptionCanceled: async (event) => {
            runs += 1
            await umbra.pool.query(
              `update subscriptions set status = 'canceled', canceled_at = $2 where id = $1 and status <> 'canceled'`,
              [event.payload.subscription_id, event.occurredAt],
            )
          },
        },
      })
    await (await umbra.run([billing()])).stop()
    await startSubscription(umbra, subscriptionId)
    const occurredAt = new Date('2026-04-13T00:15:00Z')
    const eventId = await umbra.publish('SubscriptionCanceled', {
      aggregateId: subscriptionId,
      payload: { subscription_id: subscriptionId },
      occurredAt,
    })
    expect(await umbra.claimAndVanish('billing')).toEqual([eventId])
    await umbra.run([billing()])
    await umbra.untilSettled()
    expect(runs).toBe(2)
    expect(await umbra.rows('select status, canceled_at from subscriptions')).toEqual([
      { status: 'canceled', canceled_at: occurredAt },
    ])
  })
})
