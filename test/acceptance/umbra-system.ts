import { randomUUID } from 'node:crypto'
import type { PoolClient } from 'pg'
import type { Transaction } from '../../src/index.ts'
import {
  defineEvents,
  type Subscription,
  type SubscriptionOptions,
  schedule,
  unchecked,
} from '../../src/index.ts'
import { openSystem, type System } from './support.ts'

const billing = { stream: 'umbra.billing', aggregate: 'subscription' } as const
const licensing = { stream: 'umbra.licensing', aggregate: 'license' } as const

interface Started {
  readonly subscription_id: string
  readonly guild_id: string
  readonly plan_code: string
}

/** The part of the seed's catalogue that these tests use. */
export const umbraEvents = defineEvents({
  SubscriptionStarted: { ...billing, schema: unchecked<Started>() },
  PaymentSucceeded: {
    ...billing,
    schema: unchecked<{ subscription_id: string; attempt_id: string; new_period_end: string }>(),
  },
  PaymentFailed: {
    ...billing,
    schema: unchecked<{ subscription_id: string; attempt_id: string; retry_count: number }>(),
  },
  SubscriptionCanceled: { ...billing, schema: unchecked<{ subscription_id: string }>() },
  LicenseGranted: {
    ...licensing,
    schema: unchecked<{ license_id: string; guild_id: string; plan_code: string }>(),
  },
  LicenseExtended: { ...licensing, schema: unchecked<{ license_id: string; new_expires_at: string }>() },
})

export type UmbraEvents = typeof umbraEvents
export type Umbra = System<UmbraEvents>
export type UmbraSubscription = Subscription<UmbraEvents, Transaction>
export type UmbraOptions = SubscriptionOptions<UmbraEvents, Transaction>

const TABLES = `
  create table subscriptions (id uuid primary key, guild_id text not null, status text not null, canceled_at timestamptz);
  create table licenses (id uuid primary key, subscription_id uuid not null unique, plan_code text not null,
                         expires_at timestamptz not null default '-infinity');
  create table audit_events (outbox_event_id uuid not null unique, event_type text not null, payload jsonb not null);`

export const openUmbra = (): Promise<Umbra> => openSystem(umbraEvents, { tables: TABLES })

/** The poller as the seed sets it. */
export const POLLER = {
  pollMs: 2_000,
  batchSize: 50,
  drain: false,
  oneAtATime: true,
  order: 'total',
  retry: schedule('1m', '5m', '15m', '1h'),
  maxAttempts: 10,
} as const

/** Billing: the first payment succeeded, so the subscription is active, and everybody is told. */
export function startSubscription(umbra: Umbra, subscriptionId: string = randomUUID()): Promise<string> {
  const { outbox, pool } = umbra
  return outbox.inTransaction(pool, async (tx) => {
    await tx.query(`insert into subscriptions values ($1, 'guild-1', 'active')`, [subscriptionId])
    return outbox.publish(tx, 'SubscriptionStarted', {
      aggregateId: subscriptionId,
      payload: { subscription_id: subscriptionId, guild_id: 'guild-1', plan_code: 'PRO' },
    })
  })
}

/** Publishes `count` payments of one subscription, numbered from 1. */
export async function fail(umbra: Umbra, subscriptionId: string, count: number): Promise<readonly string[]> {
  const ids: string[] = []
  for (let n = 1; n <= count; n += 1) {
    const payload = { subscription_id: subscriptionId, attempt_id: randomUUID(), retry_count: n }
    ids.push(await umbra.publish('PaymentFailed', { aggregateId: subscriptionId, payload }))
  }
  return ids
}

/** Licensing: grants a licence for a subscription. */
export async function insertLicense(
  tx: PoolClient,
  { subscription_id, plan_code }: Started,
): Promise<string> {
  const id = randomUUID()
  await tx.query('insert into licenses (id, subscription_id, plan_code) values ($1, $2, $3)', [
    id,
    subscription_id,
    plan_code,
  ])
  return id
}
