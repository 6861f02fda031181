import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { insertEvent, makeDead, refusal, subscribe } from './fixtures.ts'
import { createRolesDatabase, type RolesDatabase } from './role-fixtures.ts'

describe('a worker', () => {
  let db: RolesDatabase

  beforeEach(async () => {
    db = await createRolesDatabase()
  })
  afterEach(async () => {
    await db.drop()
  })

  test.each([
    `update outbox_delivery set held = not held`,
    `update outbox_delivery set last_error_message = 'it was somebody else'`,
    `update outbox_delivery set attempt_history = '[]', updated_at = now()`,
  ])('cannot rewrite what has ended: %s', async (change) => {
    const subscriptionId = await subscribe(db)
    await makeDead(db, { eventId: await insertEvent(db.pool) })
    const dead = `where subscription_id = ${subscriptionId}`
    expect(await refusal(db.as.worker.query(`${change} ${dead}`))).toBe('55000')
    const decided = `select outbox_resolve(id, 'kim') from outbox_dead_letter ${dead}`
    await db.pool.query(decided)
    expect(await refusal(db.as.worker.query(`${change} ${dead}`))).toMatch(/55000|23514/)
  })

  test('cannot retire a subscription without saying by whom', async () => {
    await subscribe(db)
    expect(await refusal(db.as.worker.query(`update outbox_subscription set state = 'retired'`))).toBe(
      '23514',
    )
  })
})
