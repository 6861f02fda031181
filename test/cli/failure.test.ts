import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { migrateUp } from '../../src/store/postgres/migrate.ts'
import { createRolesDatabase } from '../store/postgres/role-fixtures.ts'
import { createTestDatabase } from '../support/database.ts'
import { compiledDirectory } from '../support/program.ts'
import { at, runCli } from './support.ts'

/** A port of this machine that nobody listens on. */
async function deadPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

test('a database that cannot be reached is named by host and port, its password never', async () => {
  const port = await deadPort()
  const url = `postgres://app:s3cr3t@127.0.0.1:${port}/shop`
  for (const args of [
    ['status'],
    ['status', '--json'],
    ['status', '--debug'],
    ['demo'],
    ['migrate', 'up', '--lang', 'ko'],
  ]) {
    const { code, stdout, stderr } = await runCli([...args, '--database', url])
    expect(code, args.join(' ')).toBe(1)
    expect(stderr).toContain(`127.0.0.1:${port}`)
    expect(stderr).toContain('DATABASE_UNREACHABLE')
    expect(stdout + stderr).not.toContain('s3cr3t')
    expect(stderr.includes('    at ')).toBe(args.includes('--debug'))
  }
})

test('the address comes from DATABASE_URL where no option names one', async () => {
  const port = await deadPort()
  const env = { DATABASE_URL: `postgres://app:s3cr3t@127.0.0.1:${port}/shop` }
  const { code, stderr } = await runCli(['status', '--json'], { env })
  expect(code).toBe(1)
  expect(JSON.parse(stderr)).toMatchObject({
    error: { code: 'DATABASE_UNREACHABLE', message: expect.stringContaining(`app@127.0.0.1:${port}/shop`) },
  })
})

test('a server that refuses says why', async () => {
  const url = new URL(inject('databaseUrl'))
  url.pathname = '/no_such_database'
  const { code, stderr } = await runCli(['status', '--database', url.href])
  expect(code).toBe(1)
  expect(stderr).toContain('Error (DATABASE_REFUSED)')
  expect(stderr).toContain('refused the connection: database "no_such_database" does not exist.')
})

test.each(['mysql://app:s3cr3t@db/x', 's3cr3t', 'postgres://app:s3cr3t@host:port/x'])(
  '%s is no address of a database',
  async (url) => {
    const { code, stdout, stderr } = await runCli(['status', '--database', url])
    expect(code).toBe(2)
    expect(stderr).toContain('is not a URL such as postgres://')
    expect(stdout + stderr).not.toContain('s3cr3t')
  },
)

test('without the tables the remedy is named', async () => {
  await using database = await createTestDatabase()
  for (const args of [['status'], ['dlq', 'list'], ['pause', 'x', '--operator', 'kim']]) {
    const { code, stderr } = await runCli([...args, ...at(database)])
    expect(code).toBe(1)
    expect(stderr).toContain('Error (SCHEMA_MISSING)')
    expect(stderr).toContain('commitpost migrate up')
  }
})

test('that the tables are missing, or newer than the program, is said wholly in Korean', async () => {
  await using database = await createTestDatabase()
  const inKorean = async (): Promise<string> =>
    (await runCli(['status', '--lang', 'ko', ...at(database)])).stderr
  expect(await inKorean()).toBe(
    `오류 (SCHEMA_MISSING): "${database.schema}" 스키마에 Commitpost 테이블이 없습니다. ` +
      `"commitpost migrate up --schema ${database.schema}" 또는 migrateUp(pool, { schema: '${database.schema}' })으로 만들거나, ` +
      '테이블이 있는 스키마를 지정하십시오.\n',
  )
  await migrateUp(database.pool, { schema: database.schema })
  await database.pool.query(
    `insert into outbox_migration (version, name, checksum) values (999, 'later', '')`,
  )
  const newer = await inKorean()
  expect(newer).toContain('스키마는 버전 999인데')
  expect(newer).toContain('commitpost 패키지를 업그레이드하십시오')
  expect(newer).not.toContain('Upgrade')
})

test.each([
  { args: ['status'], says: ['lacks a right', 'permission denied for table outbox_', 'commitpost doctor'] },
  { args: ['verify'], says: ['lacks a right', 'permission denied for table outbox_', 'commitpost doctor'] },
  { args: ['dlq', 'list'], says: ['lacks a right', 'permission denied for table outbox_'] },
  { args: ['monitor', '--once', '--lang', 'ko'], says: ['필요한 권한이 없습니다', 'commitpost doctor'] },
])('a role without rights is told which one $args needs, and where to look', async ({ args, says }) => {
  await using db = await createRolesDatabase()
  const url = new URL(String(db.as.publisher.options.connectionString))
  const { code, stdout, stderr } = await runCli([...args, ...at({ ...db, url: url.href })])
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  for (const text of says) expect(stderr).toContain(text)
})

test('without the driver the program says what to install', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'commitpost-cli-'))
  try {
    await cp(join(compiledDirectory, 'src'), join(directory, 'dist'), { recursive: true })
    await writeFile(
      join(directory, 'package.json'),
      '{ "name": "commitpost", "version": "9.9.9", "type": "module" }',
    )
    const program = join(directory, 'dist', 'cli', 'main.js')
    const { code, stderr } = await runCli(['status', '--database', 'postgres://db/x'], { program })
    expect(code).toBe(1)
    expect(stderr).toContain('Error (DRIVER_MISSING)')
    expect(stderr).toContain('npm install pg')
    expect((await runCli(['version'], { program })).stdout).toBe('9.9.9\n')
    expect((await runCli(['migrate', 'sql'], { program })).code).toBe(0)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})
