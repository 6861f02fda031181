import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { runCli } from './support.ts'

let database: TestDatabase
let schema: string

beforeEach(async () => {
  database = await createTestDatabase()
  schema = `${database.schema} "한글"; drop`
})

afterEach(async () => {
  await database.pool.query(`drop schema if exists "${schema.replaceAll('"', '""')}" cascade`)
  await database.drop()
})

function migrate(...args: readonly string[]): ReturnType<typeof runCli> {
  return runCli(['migrate', ...args, '--database', database.url, '--schema', schema])
}

test('status, up, status again and up again, on a schema with a name that needs quoting', async () => {
  const before = await migrate('status', '--json')
  expect(before.code).toBe(1)
  expect(JSON.parse(before.stdout)).toMatchObject({
    schema,
    state: 'missing',
    schemaVersion: null,
    applied: [],
  })

  const up = await migrate('up', '--json')
  expect(up.code).toBe(0)
  const { schemaVersion, applied } = JSON.parse(up.stdout) as { schemaVersion: number; applied: object[] }
  expect(applied[0]).toMatchObject({ version: 1, name: 'core' })
  expect(applied.at(-1)).toMatchObject({ version: schemaVersion })

  const after = await migrate('status', '--json')
  expect(after.code).toBe(0)
  expect(JSON.parse(after.stdout)).toMatchObject({ state: 'current', schemaVersion, pending: [] })

  const again = await migrate('up', '--lang', 'ko')
  expect(again).toMatchObject({ code: 0, stdout: '' })
  expect(again.stderr).toContain('할 일이 없습니다.')
})

test('what happens goes to the standard error, what is there to the standard output', async () => {
  const up = await migrate('up')
  expect(up.stdout).toMatch(/^applied {2}0001 {2}core$/m)
  expect(up.stderr).toMatch(/is now at version \d+\./)

  const status = await migrate('status')
  expect(status.stdout).toMatch(/^0001 +core +\w+ \d+, \d{4}, \d\d:\d\d:\d\d$/m)
  expect(status.stderr).toContain('current')
})

test('sql prints a script after which nothing is left to do', async () => {
  const { code, stdout, stderr } = await migrate('sql')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  await database.pool.query(stdout)
  expect((await migrate('status')).code).toBe(0)
})

test('sql --from leaves out what is there, and needs no database', async () => {
  const { stdout } = await runCli(['migrate', 'sql', '--from', '1', '--json'])
  const { sql, from } = JSON.parse(stdout) as { sql: string; from: number }
  expect(from).toBe(1)
  expect(sql).not.toContain('create schema')
  expect(sql).toContain('0002_')
})

test('roles sql names the roles by the prefix', async () => {
  const { code, stdout } = await runCli(['roles', 'sql', '--schema', 'my box', '--prefix', 'shop'])
  expect(code).toBe(0)
  expect(stdout).toContain('"my box".outbox_event')
  expect(stdout).toContain('"shop_publisher"')
})

test('partition converts, makes periods, and says so in both languages, on a schema with a name that needs quoting', async () => {
  await migrate('up')
  const first = await migrate('partition', '--every', '2d', '--json')
  expect(first).toMatchObject({ code: 0, stderr: '' })
  expect(JSON.parse(first.stdout)).toMatchObject({ schema, converted: true, everyDays: 2 })
  const again = await migrate('partition', '--lang', 'ko')
  expect(again).toMatchObject({ code: 0, stdout: '' })
  expect(again.stderr).toContain('기간은 1일이며')
  expect((await migrate('partition')).stderr).toContain('Periods of 1 day(s), made up to 20')
})

test('partition --sql prints statements that convert, one by one', async () => {
  await migrate('up')
  const { stdout } = await migrate('partition', '--sql')
  for (const statement of stdout.split('\n').filter((line) => line.startsWith('select'))) {
    await database.pool.query(statement)
  }
  const { stdout: report } = await migrate('partition', '--json')
  expect(JSON.parse(report)).toMatchObject({ converted: false, everyDays: 1 })
})

test.each(['1', '0d', '91d', '1h', '1.5d'])('partition --every %s is refused', async (every) => {
  const { code, stderr } = await runCli(['migrate', 'partition', '--sql', '--every', every])
  expect(code).toBe(2)
  expect(stderr).toContain('--every must be a number of days from 1d to 90d')
})
