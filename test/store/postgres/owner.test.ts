import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { quoteSchema } from '../../../src/store/postgres/identifiers.ts'
import { migrateUp } from '../../../src/store/postgres/migrate.ts'
import { rolesSql } from '../../../src/store/postgres/roles.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { insertEvent, makeDead, type OutboxDatabase, one, refusal, subscribe } from './fixtures.ts'

let database: TestDatabase
/** As an ordinary role sees it, which owns the schema and is no superuser: what managed databases offer. */
let db: OutboxDatabase

beforeEach(async () => {
  database = await createTestDatabase()
  const owner = `${database.schema}_owner`
  await database.pool.query(
    `create role ${owner} login createrole password 'secret'; alter schema ${database.schema} owner to ${owner}`,
  )
  const url = new URL(database.url)
  url.username = owner
  url.password = 'secret'
  const pool = new pg.Pool({ connectionString: url.href, max: 4 })
  db = { ...database, url: url.href, pool, quoted: quoteSchema(database.schema) }
})
afterEach(async () => {
  await db.pool.end()
  const { schema, pool } = database
  const roles = ['publisher', 'worker', 'operator', 'viewer'].map((job) => `${schema}_${job}`).join(', ')
  await pool.query(
    `reassign owned by ${schema}_owner to current_user;
     drop owned by ${roles}, ${schema}_owner; drop role ${roles}, ${schema}_owner`,
  )
  await database.drop()
})

test('an ordinary owner migrates, grants, publishes, re-drives and forgets', async () => {
  await migrateUp(db.pool, { schema: db.schema, createSchema: false })
  await db.pool.query(await rolesSql({ schema: db.schema, prefix: db.schema }))
  await subscribe(db)
  const eventId = await insertEvent(db.pool, { sequenced: true })
  const { letterId } = await makeDead(db, { eventId })
  await db.pool.query(`select outbox_retry($1, 'kim')`, [letterId])
  await db.pool.query(
    `update outbox_delivery set status = 'PROCESSING', fresh = false, held = false, next_retry_at = null, locked_by = 'w',
            locked_until = now(), lease_token = 1;
     update outbox_delivery set status = 'DONE', fresh = false, processed_at = now(), locked_by = null, locked_until = null,
            lease_token = null`,
  )
  expect(await refusal(db.pool.query('delete from outbox_event'))).toBe('55000')
  expect(await one(db.pool, 'select outbox_forget($1::uuid[])', [[eventId]])).toBe(1)
  expect(await refusal(db.pool.query('delete from outbox_event'))).toBe('55000')
})
