import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { quoteSchema } from '../../../src/store/postgres/identifiers.ts'
import { fillIn, readMigrations } from '../../../src/store/postgres/migration-files.ts'
import { createTestDatabase } from '../../support/database.ts'
import { dead, join } from '../contract/helpers.ts'
import { column, inRolledBack, inTransaction, one, refusal } from './fixtures.ts'
import {
  createProofDatabase,
  type ProofDatabase,
  proofOn,
  publish,
  sabotage,
  settle,
} from './proof-fixtures.ts'

/** The step that makes the log a chain. */
const CHAINED = 7

let db: ProofDatabase

beforeEach(async () => {
  db = await createProofDatabase()
})
afterEach(async () => {
  await db.drop()
})

const act = (operator: string, note = 'because'): Promise<unknown> =>
  db.pool.query(
    `insert into outbox_operator_log (operator, action, target, affected, note)
     values ($1, 'pause', '{"subscription": "sub"}', 1, $2)`,
    [operator, note],
  )

/** Five acts of five people. */
async function log(): Promise<void> {
  for (const operator of ['kim', 'lee', 'park', 'choi', '정']) await act(operator)
}

const entryOf = (operator: string): Promise<string> =>
  one(db.pool, 'select entry::text from outbox_operator_log where operator = $1', [operator])

describe('an act with psql', () => {
  test.each([
    ['a note of 1 MB', `'kim', repeat('x', 1048576)`, /note.*at most 2000 characters/],
    ['a name of 1 MB', `repeat('x', 1048576)`, /name.*at most 200 characters/],
  ])('D3 with %s is refused, and changes nothing', async (_, given, says) => {
    const sub = await join(db.worker)
    await publish(db, 1)
    await settle(db, sub, 1, dead)
    for (const name of ['outbox_retry', 'outbox_resolve']) {
      const acting = db.pool.query(`select ${name}(id, ${given}) from outbox_dead_letter`)
      await expect(acting).rejects.toMatchObject({ code: '22023', message: expect.stringMatching(says) })
    }
    expect(await column(db.pool, 'select resolved from outbox_dead_letter')).toEqual([false])
    expect(await column(db.pool, 'select status from outbox_delivery')).toEqual(['DEAD'])
    expect(await column(db.pool, 'select 1 from outbox_operator_log')).toEqual([])
  })

  test('D3 with a note as long as may be is recorded, of an amended event too', async () => {
    const sub = await join(db.worker)
    await publish(db, 1)
    await settle(db, sub, 1, dead)
    await db.pool.query(`select outbox_amend(id, '{}', 'kim', repeat('x', 2000)) from outbox_dead_letter`)
    expect(await one(db.pool, 'select length(note) > 2000 from outbox_operator_log')).toBe(true)
  })
})

describe('L11 the chain of the operator log', () => {
  test('holds from its first entry to its last, and tells the hash to be kept elsewhere', async () => {
    const exports = { holds: true, entries: 0, hash: '0'.repeat(64), broken: null }
    expect(await db.proof.audit()).toEqual({ ...exports, exports })
    await log()
    const hash = await one(db.pool, 'select hash from outbox_operator_log order by entry desc limit 1')
    expect(await db.proof.audit()).toEqual({ holds: true, entries: 5, hash, broken: null, exports })
    expect(hash).toMatch(/^[0-9a-f]{64}$/)
    const links = await column(
      db.pool,
      `select o.previous_hash = coalesce(lag(o.hash) over (order by o.entry), repeat('0', 64)) from outbox_operator_log o`,
    )
    expect(links).toEqual([true, true, true, true, true])
  })

  test('is the same whatever the settings of the session', async () => {
    await log()
    await inRolledBack(db, async (client) => {
      await client.query(
        `set local timezone = 'Asia/Seoul'; set local datestyle = 'German'; set local bytea_output = 'escape'`,
      )
      const differing = `select count(*)::int from outbox_operator_log o where o.hash <> outbox_operator_hash(o)`
      expect(await one(client, differing)).toBe(0)
    })
  })

  test.each([
    `operator = 'nobody'`,
    `action = 'resume'`,
    `target = '{"subscription": "other"}'`,
    'affected = 2',
    `note = 'another reason'`,
    'note = null',
    `at = at + interval '1 microsecond'`,
  ])('breaks where a superuser sets %s', async (change) => {
    await log()
    await sabotage(db, `update outbox_operator_log set ${change} where operator = 'park'`)
    expect(await db.proof.audit()).toMatchObject({
      holds: false,
      entries: 5,
      broken: { entry: '3', problem: 'changed' },
    })
  })

  test('breaks at the entry after one that was changed together with its hash', async () => {
    await log()
    await sabotage(db, `update outbox_operator_log set note = 'forged' where operator = 'lee'`)
    await sabotage(
      db,
      `update outbox_operator_log o set hash = outbox_operator_hash(o) where operator = 'lee'`,
    )
    const id = await one(db.pool, `select id::text from outbox_operator_log where operator = 'park'`)
    expect(await db.proof.audit()).toMatchObject({ broken: { entry: '3', id, problem: 'unlinked' } })
  })

  test('breaks where the last entry was changed together with its hash', async () => {
    await log()
    await sabotage(db, `update outbox_operator_log set note = 'forged' where operator = '정'`)
    await sabotage(
      db,
      `update outbox_operator_log o set hash = outbox_operator_hash(o) where operator = '정'`,
    )
    expect(await db.proof.audit()).toMatchObject({ broken: { entry: '5', problem: 'changed' } })
  })

  test('breaks where an entry was deleted, and where the last ones were cut off', async () => {
    await log()
    const before = await one(db.pool, `select hash from outbox_operator_log where operator = 'lee'`)
    await sabotage(db, `delete from outbox_operator_log where operator = 'park'`)
    expect(await db.proof.audit()).toMatchObject({
      holds: false,
      entries: 4,
      hash: before,
      broken: { entry: '3', id: null, problem: 'missing' },
    })
    await sabotage(db, 'delete from outbox_operator_log where entry > 2')
    expect(await db.proof.audit()).toMatchObject({
      holds: false,
      entries: 2,
      hash: before,
      broken: { entry: '3', id: null, problem: 'cut-off' },
    })
  })

  test('breaks where all of it was deleted', async () => {
    await log()
    await sabotage(db, 'delete from outbox_operator_log')
    expect(await db.proof.audit()).toMatchObject({ broken: { entry: '1', problem: 'cut-off' } })
  })

  test('breaks where an entry was added behind the back of its trigger', async () => {
    await log()
    await sabotage(
      db,
      `insert into outbox_operator_log (operator, action, target, affected, entry, previous_hash, hash)
       select 'ghost', 'pause', '{}', 1, h.entries + 1, h.hash, '' from outbox_operator_log_head h`,
    )
    await sabotage(
      db,
      `update outbox_operator_log o set hash = outbox_operator_hash(o) where operator = 'ghost'`,
    )
    expect(await db.proof.audit()).toMatchObject({ entries: 6, broken: { entry: '6', problem: 'added' } })
  })

  test('is not forked by operators who act at the same time', async () => {
    await Promise.all(Array.from({ length: 40 }, (_, n) => act(`operator ${n}`)))
    expect(await db.proof.audit()).toMatchObject({ holds: true, entries: 40 })
  })

  test('is not forked by a transaction that reads an old snapshot: it is refused, to be tried again', async () => {
    const refused = inTransaction(
      db,
      async (client) => {
        await client.query('select 1')
        await act('first')
        await client.query(
          `insert into outbox_operator_log (operator, action, target, affected) values ('late', 'pause', '{}', 1)`,
        )
      },
      'begin isolation level repeatable read',
    )
    expect(await refusal(refused)).toBe('40001')
    expect(await db.proof.audit()).toMatchObject({ holds: true, entries: 1 })
  })

  test('has no gap where an act was rolled back', async () => {
    await act('kim')
    await inRolledBack(db, (client) =>
      client.query(
        `insert into outbox_operator_log (operator, action, target, affected) values ('undone', 'pause', '{}', 1)`,
      ),
    )
    await act('lee')
    expect(await entryOf('lee')).toBe('2')
    expect(await db.proof.audit()).toMatchObject({ holds: true, entries: 2 })
  })

  test('begins with what was logged before there was a chain', async () => {
    await using old = await createTestDatabase()
    const apply = async (isWanted: (version: number) => boolean): Promise<void> => {
      for (const { version, sql } of await readMigrations()) {
        if (isWanted(version)) await old.pool.query(fillIn(sql, quoteSchema(old.schema)))
      }
    }
    await apply((version) => version < CHAINED)
    await old.pool.query(
      `insert into outbox_operator_log (operator, action, target, affected) values
       ('kim', 'pause', '{}', 1), ('lee', 'resume', '{}', 1)`,
    )
    await apply((version) => version >= CHAINED)
    await old.pool.query(
      `insert into outbox_operator_log (operator, action, target, affected) values ('park', 'pause', '{}', 1)`,
    )
    expect(await proofOn(old.pool, old.schema).audit()).toMatchObject({ holds: true, entries: 3 })
  })

  test('takes several entries of one statement, and what somebody sets himself is not taken', async () => {
    await db.pool.query(
      `insert into outbox_operator_log (operator, action, target, affected, entry, previous_hash, hash)
       select 'kim', 'pause', '{}', n, 77, 'x', 'y' from generate_series(1, 3) n`,
    )
    expect(await column(db.pool, 'select entry::int from outbox_operator_log order by id')).toEqual([1, 2, 3])
    expect(await db.proof.audit()).toMatchObject({ holds: true, entries: 3 })
  })
})
