import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../../src/store/postgres/postgres-store.ts'
import { column, insertEvent, makeDead, refusal, subscribe } from './fixtures.ts'
import { createRolesDatabase, type RolesDatabase } from './role-fixtures.ts'

let db: RolesDatabase

beforeAll(async () => {
  db = await createRolesDatabase()
})
afterAll(async () => {
  await db.drop()
})

const dead = async (): Promise<string> =>
  (await makeDead(db, { eventId: await insertEvent(db.pool) })).letterId

test('an operator groups, amends and purges; a viewer reads', async () => {
  await subscribe(db)
  const letterId = await dead()
  const viewer = postgresStore({ pool: db.as.viewer, schema: db.schema })
  expect(await viewer.groupDeadLetters({})).toHaveLength(1)
  expect(await viewer.blockedKeys({})).toEqual([])
  const operator = postgresStore({ pool: db.as.operator, schema: db.schema })
  expect(await operator.groupDeadLetters({})).toHaveLength(1)
  const request = {
    eventId: randomUUID(),
    payloadJson: '{}',
    schemaVersion: null,
    operator: 'kim',
    note: null,
  }
  await operator.amendDeadLetter(letterId, request)
  expect(
    await operator.purgeDeadLetters({ olderThanMs: 0, subscription: null, operator: 'kim', note: null }),
  ).toBe(1)
  const acts = await column(db.pool, 'select action from outbox_operator_log order by id')
  expect(acts).toEqual(['amend', 'purge'])
})

describe('nobody else', () => {
  test.each(['publisher', 'worker', 'viewer'] as const)('such as a %s, amends or purges', async (job) => {
    const calls = [`outbox_amend(1, '{}', 'x')`, `outbox_purge('1 day', 'x')`, `outbox_describe_letter()`]
    for (const call of calls) expect(await refusal(db.as[job].query(`select ${call}`))).toBe('42501')
  })

  test.each(['publisher', 'worker', 'operator', 'viewer'] as const)(
    'such as a %s, makes an event an amended one by hand',
    async (job) => {
      const insert = `insert into outbox_amendment (event_id, amended_from, dead_letter, subscription_id)
        values (gen_random_uuid(), gen_random_uuid(), 1, 1)`
      expect(await refusal(db.as[job].query(insert))).toBe('42501')
    },
  )
})
