import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { refusal } from './fixtures.ts'
import { proofOn } from './proof-fixtures.ts'
import { createRolesDatabase, type RolesDatabase } from './role-fixtures.ts'

let db: RolesDatabase

beforeAll(async () => {
  db = await createRolesDatabase()
})
afterAll(async () => {
  await db.drop()
})

describe.each(['publisher', 'worker', 'operator', 'viewer'] as const)('L11 the %s cannot', (job) => {
  test.each([
    `update outbox_operator_log_head set hash = 'x'`,
    'delete from outbox_operator_log_head',
    `insert into outbox_operator_log (operator, action, target, affected, hash) values ('k', 'x', '{}', 1, 'h')`,
    `update outbox_scope set start_from = 'beginning'`,
    'delete from outbox_scope',
    'insert into outbox_scope (subscription_id, start_from) values (1, $$now$$)',
    'create trigger t before insert on outbox_inbox for each row execute function outbox_chain()',
    'create temp table t (a int); create trigger t before insert on t for each row execute function outbox_chain()',
  ])('%s', async (sql) => {
    expect(await refusal(db.as[job].query(`begin; ${sql}; rollback`))).toBe('42501')
  })
})

test('an operator adds to the chain without any right on its end', async () => {
  await db.as.operator.query(
    `insert into outbox_operator_log (operator, action, target, affected) values ('kim', 'pause', '{}', 1)`,
  )
  expect((await db.pool.query('select entries::int from outbox_operator_log_head')).rows).toEqual([
    { entries: 1 },
  ])
})

test.each([
  ['no right on any table', 'select on all tables in schema'],
  ['no right on the schema', 'usage on schema'],
])('the doctor tells a role that has %s so, and all that can be seen without', async (_, right) => {
  await using own = await createRolesDatabase()
  await own.pool.query(`revoke ${right} ${own.schema} from ${own.schema}_viewer`)
  const { severity, findings } = await proofOn(own.as.viewer, own.schema).doctor()
  expect(severity).toBe('problem')
  const codes = findings.map(({ code }) => code)
  expect(codes).toContain('TABLES_UNREADABLE')
  expect(findings.map(({ check }) => check)).toEqual(
    expect.arrayContaining(['objects', 'durability', 'clock']),
  )
  expect(codes.filter((code) => code.startsWith('SCHEMA'))).toEqual([])
})
