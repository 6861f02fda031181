import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createOutbox, defineEvents, unchecked } from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { createTestDatabaseWithTables, type TestDatabase } from '../support/database.ts'
import { compiledDirectory, eventually } from '../support/program.ts'
import { at, runCli, startCli } from './support.ts'

let database: TestDatabase
let directory: string

const module = (path: string): string =>
  JSON.stringify(pathToFileURL(join(compiledDirectory, 'src', path)).href)

const config = (): string => `
  import pg from ${JSON.stringify(import.meta.resolve('pg'))}
  import { createOutbox, defineEvents, unchecked } from ${module('index.js')}
  import { postgresStore } from ${module('store/postgres/index.js')}
  export default ({ databaseUrl, schema }) => {
    const pool = new pg.Pool({ connectionString: databaseUrl })
    const events = defineEvents({ OrderPlaced: { stream: 'shop.order', aggregate: 'order', schema: unchecked() } })
    const outbox = createOutbox({
      store: postgresStore({ pool, schema }),
      events,
      retention: { pauseMs: 0, share: 1, policies: [{ name: 'now', stream: 'shop.order', keepDays: 0, action: 'delete' }] },
    })
    return {
      outbox,
      subscriptions: [outbox.subscription('mailer', { on: { OrderPlaced: () => undefined } })],
      close: () => pool.end(),
    }
  }`

/** Two events that are done. */
beforeEach(async () => {
  database = await createTestDatabaseWithTables()
  directory = await mkdtemp(join(tmpdir(), 'commitpost-retain-'))
  await writeFile(join(directory, 'commitpost.config.mjs'), config())
  const { pool, schema } = database
  const events = defineEvents({
    OrderPlaced: { stream: 'shop.order', aggregate: 'order', schema: unchecked<object>() },
  })
  const outbox = createOutbox({ store: postgresStore({ pool, schema }), events })
  await using worker = outbox.worker([
    outbox.subscription('mailer', { on: { OrderPlaced: () => undefined } }),
  ])
  await worker.active()
  await outbox.inTransaction(pool, (tx) =>
    outbox.publishAll(tx, [
      { type: 'OrderPlaced', aggregateId: 1, payload: {} },
      { type: 'OrderPlaced', aggregateId: 2, payload: {} },
    ]),
  )
  await eventually('both are done', async () => (await outbox.status())[0]?.counts.DONE === 2)
})
afterEach(async () => {
  await database.drop()
  await rm(directory, { recursive: true, force: true })
})

const cli = (...args: readonly string[]): ReturnType<typeof runCli> =>
  runCli([...args, ...at(database)], { cwd: directory })

const left = async (): Promise<number> => {
  const { rows } = await database.pool.query<{ n: number }>('select count(*)::int as n from outbox_event')
  return rows[0]?.n ?? -1
}

test('retain run counts what would go, lets it go for somebody, and retain status shows it', async () => {
  expect(await cli('retain', 'status')).toMatchObject({ code: 0, stdout: '' })
  const dry = await cli('retain', 'run', '--dry-run')
  expect(dry).toMatchObject({ code: 0, stderr: expect.stringContaining('Nothing has been changed.') })
  expect(dry.stdout).toMatch(/^now +shop\.order +would go +2 +0$/m)
  expect(await left()).toBe(2)
  const ran = await cli('retain', 'run', '--operator', 'kim', '--stream', 'shop.order', '--json')
  expect(ran.code).toBe(0)
  expect(JSON.parse(ran.stdout)).toMatchObject({
    dryRun: false,
    operator: 'kim',
    policies: [{ policy: 'now', state: 'done', deleted: 2, archived: 0 }],
  })
  expect(await left()).toBe(0)
  const status = await cli('retain', 'status', '--policy', 'now', '--json')
  expect(JSON.parse(status.stdout)).toMatchObject({ runs: [{ policy: 'now', deleted: 2 }] })
  expect((await cli('retain', 'status', '--lang', 'ko')).stdout).toMatch(/now +shop\.order +완료 +2 +0/)
})

test('retain status of a policy that never ran says so, and names those that did', async () => {
  const before = await cli('retain', 'status', '--policy', 'nope')
  expect(before).toMatchObject({ code: 0, stderr: 'No retention policy has been carried out yet.\n' })
  await cli('retain', 'run', '--operator', 'kim')
  const strange = await cli('retain', 'status', '--policy', 'nope')
  expect(strange).toMatchObject({ code: 1, stdout: '' })
  expect(strange.stderr).toContain('There is no run of a retention policy "nope". There are runs of: now.')
  const korean = await cli('retain', 'status', '--policy', 'nope', '--lang', 'ko')
  expect(korean.code).toBe(1)
  expect(korean.stderr).toContain('보존 정책 "nope"의 실행 기록이 없습니다. 실행 기록이 있는 정책: now.')
  const json = await cli('retain', 'status', '--policy', 'nope', '--json')
  expect(json).toMatchObject({ code: 1, stdout: '' })
  expect(json.stderr).toContain('"code":"NOT_FOUND"')
})

test('retain run that finds nothing says so, and that nobody was recorded', async () => {
  const first = await cli('retain', 'run', '--operator', 'kim')
  expect(first).toMatchObject({ code: 0, stderr: 'Recorded for kim.\n' })
  const second = await cli('retain', 'run', '--operator', 'kim')
  expect(second).toMatchObject({
    code: 0,
    stderr: 'There was nothing to let go, so nothing was recorded.\n',
  })
  const { rows } = await database.pool.query(
    `select affected from outbox_operator_log where action = 'retain'`,
  )
  expect(rows).toEqual([{ affected: 2 }])
})

test('retain run says once what it waits for, and goes on', async () => {
  const registering = await database.pool.connect()
  try {
    await registering.query('begin; select outbox_lock_registry()')
    const args = ['retain', 'run', '--operator', 'kim', '--lang', 'ko', ...at(database)]
    const running = startCli(args, { cwd: directory })
    running.process.stdin?.end()
    await running.note('now: 등록 중이거나 참여 중인 구독이 필요로 할 수 있으므로 끝날 때까지 기다립니다.')
    await registering.query('commit')
    const { code, stdout, stderr } = await running.ended
    expect(code).toBe(0)
    expect(stderr.match(/기다립니다/g)).toHaveLength(1)
    expect(stdout.match(/^now: 삭제 0건/gm)).toBeNull()
    expect(await left()).toBe(0)
  } finally {
    registering.release()
  }
})

test('retain run that is interrupted while it waits does not claim that there was nothing to let go', async () => {
  const registering = await database.pool.connect()
  try {
    await registering.query('begin; select outbox_lock_registry()')
    const running = startCli(['retain', 'run', '--operator', 'kim', ...at(database)], { cwd: directory })
    running.process.stdin?.end()
    await running.note('now: waits until no subscription is registering or joining')
    running.signal('SIGINT')
    const { code, stdout, stderr } = await running.ended
    expect(code).toBe(1)
    expect(stdout).toMatch(/^now +shop\.order +interrupted +0 +0$/m)
    expect(stderr).toMatch(/Interrupted\. Run it again, or let a worker do it: it goes on where it was\.\n$/)
    expect(await left()).toBe(2)
  } finally {
    registering.release(true)
  }
})

test('retain run needs a name, a policy of that stream and a config, or changes nothing', async () => {
  const nameless = await cli('retain', 'run')
  expect(nameless).toMatchObject({ code: 2, stderr: expect.stringContaining('--operator is missing') })
  const strange = await cli('retain', 'run', '--operator', 'kim', '--stream', 'nope')
  expect(strange).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('There is no retention policy of stream "nope". There are: shop.order.'),
  })
  const korean = await cli('retain', 'run', '--operator', 'kim', '--stream', 'nope', '--lang', 'ko')
  expect(korean).toMatchObject({
    code: 1,
    stderr: '오류 (NOT_FOUND): 스트림 "nope"의 보존 정책이 없습니다. 있는 정책: shop.order.\n',
  })
  const nowhere = await cli('retain', 'run', '--operator', 'kim', '--config', 'nowhere.mjs')
  expect(nowhere).toMatchObject({ code: 1, stderr: expect.stringContaining('nowhere.mjs') })
  expect(await left()).toBe(2)
})
