import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { UNBOUNDED } from '../../src/store/postgres/low-water.ts'
import {
  beat,
  claim,
  claimLanes,
  DONE,
  join,
  retryNow,
  settled,
  takeLanes,
} from '../store/contract/helpers.ts'
import { one } from '../store/postgres/fixtures.ts'
import { eventually } from '../support/program.ts'
import { explain, pagesScanned, parameter, withLimit } from './plan.ts'
import type { Sent } from './stepping-pool.ts'
import { asIfHeld, type Hazard, hazard, publish, publishMany } from './support.ts'

const DELIVERED = 20_000
const RETRIED = 500
const TIMES = 10
const FEW_PAGES = 100
const MANY_PAGES = 500

const POSITION = /then \$(\d+)::bigint else 0/
const ERA = /::text\) = \$(\d+)/

const DUE_FROM = /least\(\$(\d+)::timestamptz/
const HELD_FROM = /then \$(\d+)::bigint\[\] else/

/** What a claim like the one that was sent reads, and the same without its bound. */
async function pagesOf(
  h: Hazard,
  sent: Sent,
): Promise<{ readonly bounded: number; readonly unbounded: number }> {
  const client = await h.connect('explain')
  const { text, values } = withLimit(sent, 10)
  const unbounded = values
    .with(parameter(text, POSITION), UNBOUNDED.position)
    .with(parameter(text, ERA), UNBOUNDED.era)
  return {
    bounded: pagesScanned(await explain(client, { text, values }), 'outbox_delivery'),
    unbounded: pagesScanned(await explain(client, { text, values: unbounded }), 'outbox_delivery'),
  }
}

/** Claims until the bound has moved past what was delivered: it waits for every transaction of the server. */
async function sentWithBound(claimNothing: () => Promise<Sent>): Promise<Sent> {
  let sent: Sent | null = null
  await eventually('the bound moves past what was delivered', async () => {
    sent = await claimNothing()
    return Number(sent.values[parameter(sent.text, POSITION)]) > DELIVERED
  })
  if (sent === null) throw new Error('nothing was sent')
  return sent
}

describe('a snapshot that somebody holds open', () => {
  test('does not make claims read everything that was delivered since: they begin at the low-water bound', async () => {
    await using h = await hazard()
    const clock = new ManualClock()
    const { store, pool } = h.worker('w', clock)
    const plain = await join(store, { name: 'plain' })
    const ordered = await join(store, { name: 'ordered', orderBy: 'aggregate' })
    const lanes = await takeLanes(store, ordered, 'w')
    await publish(h.db.pool, ['warm'])
    const holder = await h.connect('holder')
    await holder.query('begin isolation level repeatable read; select count(*) from outbox_delivery')
    await publishMany(h, DELIVERED, 'n % 1000')
    for (let claimed = 1; claimed > 0; ) {
      // One refresh for each claim, and no pass without a bound in between.
      await clock.advance(1_000)
      const batch = [
        ...(await claim(store, plain, 'w', 2_000)),
        ...(await claimLanes(store, ordered, 'w', lanes, 2_000)),
      ]
      await store.settle(batch.map((delivery) => settled(delivery, DONE)))
      claimed = batch.length
    }
    await publish(h.db.pool, ['new'])
    const ofPlain = await sentWithBound(async () => {
      await clock.advance(1_000)
      await claim(store, plain, 'w', 0)
      return pool.lastSent(/for update skip locked\) as ids/)
    })
    const ofLanes = await sentWithBound(async () => {
      await clock.advance(1_000)
      await claimLanes(store, ordered, 'w', lanes, 0)
      return pool.lastSent(/for update nowait/)
    })
    for (const sent of [ofPlain, ofLanes]) {
      const { bounded, unbounded } = await pagesOf(h, sent)
      expect(bounded).toBeLessThan(FEW_PAGES)
      expect(unbounded).toBeGreaterThan(MANY_PAGES)
    }
  })

  test('nor everything that was retried since: they begin where something may still be held or due', async () => {
    await using h = await hazard()
    const clock = new ManualClock()
    const { store, pool } = h.worker('w', clock)
    const plain = await join(store, { name: 'plain' })
    const ordered = await join(store, { name: 'ordered', orderBy: 'aggregate' })
    const lanes = await takeLanes(store, ordered, 'w')
    const take = async (limit: number) => [
      ...(await claim(store, plain, 'w', limit)),
      ...(await claimLanes(store, ordered, 'w', lanes, limit)),
    ]
    await publishMany(h, RETRIED, 'n')
    const holder = await h.connect('holder')
    await holder.query('begin isolation level repeatable read; select count(*) from outbox_delivery')
    for (let time = 0; time <= TIMES; time += 1) {
      const batch = await take(RETRIED)
      expect(batch).toHaveLength(RETRIED * 2)
      const settlement = time < TIMES ? retryNow : DONE
      await store.settle(batch.map((delivery) => settled(delivery, settlement)))
    }
    const [time, xid] = [
      await one<Date>(h.db.pool, 'select clock_timestamp()'),
      await one<string>(h.db.pool, 'select pg_current_xact_id()::text'),
    ]
    await publishMany(h, 100, 'n')
    const ways = [
      { way: /for update skip locked\) as ids/, rewrite: (text: string) => text },
      { way: /for update nowait/, rewrite: (text: string) => text },
      { way: /tried as materialized/, rewrite: asIfHeld },
    ]
    for (const { way, rewrite } of ways) {
      pool.rewrite = rewrite
      await eventually('the bound moves past what was retried', async () => {
        await clock.advance(1_000)
        await take(0)
        return isPast(pool.lastSent(way), time, xid)
      })
      const sent = withDuePlaces(pool.lastSent(way))
      await beat(store, ordered, 'w', [], lanes)
      const { bounded, unbounded } = await pagesOf(h, sent)
      expect(bounded).toBeLessThan(FEW_PAGES * 3)
      expect(unbounded).toBeGreaterThan(MANY_PAGES * 3)
    }
  })
})

/** A claim that was sent, with places for retries: one of nothing has none. */
function withDuePlaces(sent: Sent): Sent {
  const pattern = /(?:\(select ids from due\)\) <|from due where not blocked limit) \$(\d+)/
  if (!pattern.test(sent.text)) return sent
  return { ...sent, values: sent.values.with(parameter(sent.text, pattern), 5) }
}

/** Whether the bounds that were sent with a claim are all later. */
function isPast({ text, values }: Sent, time: Date, xid: string): boolean {
  const of = (pattern: RegExp): string | null =>
    pattern.test(text) ? String(values[parameter(text, pattern)]) : null
  const due = of(DUE_FROM)
  const held = of(HELD_FROM)
  const isLate = due === null || new Date(due) > time
  return (
    isLate && (held === null || (held.match(/\d+/g) ?? ['0']).every((since) => BigInt(since) > BigInt(xid)))
  )
}
