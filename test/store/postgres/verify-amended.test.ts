import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { amendDeadLetter } from '../../../src/store/postgres/amend-dead-letter.ts'
import { dead, join } from '../contract/helpers.ts'
import { one } from './fixtures.ts'
import {
  createProofDatabase,
  type ProofDatabase,
  proofOf,
  publish,
  sabotage,
  settle,
} from './proof-fixtures.ts'

/** Puts another event in the place of the one that died last. Returns its id. */
async function amendLast(db: ProofDatabase): Promise<string> {
  const letterId = await one<string>(
    db.pool,
    'select max(id)::text from outbox_dead_letter where not resolved',
  )
  const eventId = randomUUID()
  const request = { eventId, payloadJson: '{}', schemaVersion: null, operator: 'kim', note: null }
  await amendDeadLetter(db.pool, db.quoted, letterId, request)
  return eventId
}

test('an event that was amended, once and again, counts once, and for nobody else', async () => {
  const db = await createProofDatabase()
  const sub = await join(db.worker)
  await join(db.worker, { name: 'other' })
  await publish(db, 3)
  await settle(db, sub, 1, dead)
  await amendLast(db)
  await settle(db, sub, 3, dead)
  const amended = await amendLast(db)

  const { holds, subscriptions } = await db.proof.verify()
  expect(
    subscriptions.map(({ matched, missing, surplus }) => [matched, missing.count, surplus.count]),
  ).toEqual([
    [3, 0, 0],
    [3, 0, 0],
  ])
  expect(holds).toBe(true)
  expect(await db.proof.audit()).toMatchObject({ holds: true })

  await sabotage(db, 'delete from outbox_delivery where event_id = $1', [amended])
  expect(await proofOf(db)).toMatchObject({ holds: false })
  await db.drop()
})
