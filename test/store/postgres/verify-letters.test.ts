import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { RegisteredSubscription } from '../../../src/store/subscription-store.ts'
import { claimLanes, dead, join, settled, takeLanes } from '../contract/helpers.ts'
import {
  createProofDatabase,
  type ProofDatabase,
  proofOf,
  publish,
  sabotage,
  settle,
} from './proof-fixtures.ts'

let db: ProofDatabase
let sub: RegisteredSubscription
let ids: readonly string[]

/** Three events that failed for good. */
beforeEach(async () => {
  db = await createProofDatabase()
  sub = await join(db.worker)
  ids = await publish(db, 3)
  await settle(db, sub, 3, dead)
})
afterEach(async () => {
  await db.drop()
})

const resolve = (eventId: string | undefined): Promise<unknown> =>
  db.pool.query(`select outbox_resolve(id, 'kim') from outbox_dead_letter where event_id = $1`, [eventId])
const removeLetter = (eventId: string | undefined): Promise<void> =>
  sabotage(db, 'delete from outbox_dead_letter where event_id = $1', [eventId])
const only = (eventId: string | undefined): object => ({ count: 1, eventIds: [eventId] })

describe('verify holds deliveries that are DEAD against their letters', () => {
  test('and is content with those whose letters were resolved, or purged', async () => {
    await resolve(ids[0])
    await resolve(ids[1])
    expect(await proofOf(db)).toMatchObject({ holds: true, counts: { DEAD: 3 } })
    await db.pool.query(`select outbox_purge('0', 'kim', most => 1)`)
    await db.pool.query(`select outbox_purge('0', 'kim', subscription_name => 'sub')`)
    expect(await proofOf(db)).toMatchObject({ holds: true, counts: { DEAD: 3 } })
  })

  test('also after a purge: a letter that it cannot have removed is missed', async () => {
    await resolve(ids[0])
    const past = `update outbox_dead_letter set resolved_at = now() - interval '40 days' where resolved`
    await db.pool.query(past)
    await sabotage(
      db,
      `update outbox_delivery set updated_at = now() - interval '40 days' where event_id = $1`,
      [ids[0]],
    )
    await db.pool.query(`select outbox_purge('30 days', 'kim')`)
    expect(await proofOf(db)).toMatchObject({ holds: true })
    await removeLetter(ids[1])
    expect(await proofOf(db)).toMatchObject({ holds: false, impossible: only(ids[1]) })
  })

  test.each([
    ['of another subscription', 'purge', { olderThanSeconds: 0, subscription: 'other' }],
    ['of an archive', 'purge-archive', { olderThanSeconds: 0, archive: 'audit.events' }],
  ])('whatever was purged %s', async (_, action, target) => {
    await db.pool.query(
      `insert into outbox_operator_log (operator, action, target, affected) values ('kim', $1, $2, 1)`,
      [action, target],
    )
    await removeLetter(ids[1])
    expect(await proofOf(db)).toMatchObject({ holds: false, impossible: only(ids[1]) })
  })

  test('names a letter that waits for a person although event and delivery are gone', async () => {
    await sabotage(db, 'delete from outbox_delivery where event_id = $1', [ids[2]])
    expect(await proofOf(db)).toMatchObject({ missing: only(ids[2]), impossible: { count: 0 } })
    await sabotage(db, 'delete from outbox_event where event_id = $1', [ids[2]])
    expect(await proofOf(db)).toMatchObject({ holds: false, matched: 2, impossible: only(ids[2]) })
  })

  test.each(['removed', 'resolved by nobody'])(
    'names the one that blocks a key where its letter was %s: nobody could let it go on',
    async (how) => {
      const ordered = await join(db.worker, { name: 'ordered', orderBy: 'aggregate' })
      const [head] = await publish(db, 2)
      const lanes = await takeLanes(db.worker, ordered, 'w')
      const [first] = await claimLanes(db.worker, ordered, 'w', lanes, 1)
      if (first === undefined) throw new Error('nothing was claimed')
      await db.worker.settle([settled(first, dead)])
      expect(await proofOf(db, 'ordered')).toMatchObject({ holds: true, counts: { DEAD: 1, PENDING: 1 } })
      await db.pool.query(`insert into outbox_operator_log (operator, action, target, affected)
                           values ('kim', 'purge', '{"olderThanSeconds": 0}', 1)`)
      if (how === 'removed') await removeLetter(head)
      else
        await sabotage(
          db,
          `update outbox_dead_letter set resolved = true, resolved_at = now(), resolved_by = 'x' where event_id = $1`,
          [head],
        )
      expect(await proofOf(db, 'ordered')).toMatchObject({ holds: false, impossible: only(head) })
    },
  )
})

test('a subscription is not removed: what waits in it would be out of sight, and the proof silent', async () => {
  await publish(db, 1)
  for (const sql of ['delete from outbox_subscription', 'truncate outbox_subscription'])
    await expect(db.pool.query(sql)).rejects.toMatchObject({ code: '55000' })
  expect(await proofOf(db)).toMatchObject({ holds: true, counts: { PENDING: 1, DEAD: 3 } })
})
