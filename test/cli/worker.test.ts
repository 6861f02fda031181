import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestDatabaseWithTables, type TestDatabase } from '../support/database.ts'
import { compiledDirectory } from '../support/program.ts'
import { at, type RunningCli, runCli, startCli } from './support.ts'

let database: TestDatabase
let directory: string

beforeEach(async () => {
  database = await createTestDatabaseWithTables()
  directory = await mkdtemp(join(tmpdir(), 'commitpost-config-'))
})

afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
  await database.drop()
})

const compiled = (path: string): string => JSON.stringify(pathToFileURL(join(compiledDirectory, path)).href)

/** Its handler says that it has begun, and ends when something is typed. Wants the database of the command line. */
const config = `
  import { once } from 'node:events'
  import pg from ${JSON.stringify(import.meta.resolve('pg'))}
  import { createOutbox } from ${compiled('src/outbox.js')}
  import { defineEvents } from ${compiled('src/event/define-events.js')}
  import { defineWorkerConfig } from ${compiled('src/cli/worker-config.js')}
  import { postgresStore } from ${compiled('src/store/postgres/postgres-store.js')}

  export default defineWorkerConfig(({ databaseUrl, schema }) => {
    const pool = new pg.Pool({ connectionString: databaseUrl })
    const events = defineEvents({ OrderPlaced: { stream: 'shop', aggregate: 'order' } })
    const outbox = createOutbox({ store: postgresStore({ pool, schema }), events })
    const mailer = outbox.subscription('mailer', {
      on: {
        OrderPlaced: async () => {
          console.log('handler has begun')
          await once(process.stdin, 'data')
          console.log('handler is done')
        },
      },
    })
    return { outbox, subscriptions: [mailer], close: () => pool.end() }
  })
`

async function startWorker(...args: readonly string[]): Promise<RunningCli> {
  await writeFile(join(directory, 'commitpost.config.mjs'), config)
  const worker = startCli(['worker', ...args, ...at(database)], { cwd: directory })
  await worker.line(args.includes('--json') ? '"worker started"' : 'Worker started')
  return worker
}

async function publish(): Promise<void> {
  await database.pool.query(
    `insert into ${database.schema}.outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
     values ('shop', 'OrderPlaced', 'order', '1', '{}')`,
  )
}

async function deliveryStatus(): Promise<string> {
  const { rows } = await database.pool.query(`select status from ${database.schema}.outbox_delivery`)
  return (rows[0] as { status: string }).status
}

test('the first SIGTERM lets the running handler finish, then the program ends with 0', async () => {
  const worker = await startWorker()
  await publish()
  await worker.line('handler has begun')
  worker.signal('SIGTERM')
  await worker.line('SIGTERM: finishing what is in hand')
  worker.process.stdin?.write('go on\n')
  const { code, stdout } = await worker.ended
  expect(code).toBe(0)
  expect(stdout.split('\n')).toEqual([
    'Worker started with commitpost.config.mjs: mailer',
    'handler has begun',
    expect.stringContaining('SIGTERM: finishing what is in hand'),
    'handler is done',
    'Worker stopped.',
    '',
  ])
  expect(await deliveryStatus()).toBe('DONE')
})

test.each([
  { signal: 'SIGTERM' as const, code: 143 },
  { signal: 'SIGINT' as const, code: 130 },
])('a second $signal ends the program at once with $code', async ({ signal, code }) => {
  const worker = await startWorker()
  await publish()
  await worker.line('handler has begun')
  worker.signal(signal)
  await worker.line(`${signal}: finishing`)
  worker.signal(signal)
  const result = await worker.ended
  expect(result.code).toBe(code)
  expect(result.stdout).not.toContain('handler is done')
  expect(await deliveryStatus()).toBe('PROCESSING')
})

test('with --json every line of the program itself is JSON', async () => {
  const worker = await startWorker('--json')
  worker.signal('SIGINT')
  const { code, stdout } = await worker.ended
  expect(code).toBe(0)
  const lines = stdout.trim().split('\n')
  const logged = lines.map((line) => JSON.parse(line) as { msg: string; level: string })
  // A worker that hears nothing for two seconds says so.
  const expected = logged.filter(({ msg }) => !msg.startsWith('listen failed'))
  expect(expected.map(({ msg }) => msg)).toEqual(['worker started', 'worker is stopping', 'worker stopped'])
})

test.each([
  { source: 'export default {}', says: ['outbox must be', 'subscriptions must be'] },
  { source: 'export const x = 1', says: ['default export must be'] },
  { source: 'export default () => 5', says: ['but is number'] },
  { source: 'throw new Error("boom")', says: ['cannot be loaded: boom'] },
  {
    source: 'export default async () => { throw new Error("no password=s3cr3t") }',
    says: ['cannot be loaded: no'],
  },
  {
    source: 'export default { outbox: { worker() {} }, subscriptions: [1] }',
    says: ['--database and --schema would have no effect'],
  },
])('the config "$source" is refused', async ({ source, says }) => {
  await writeFile(join(directory, 'own.mjs'), source)
  const { code, stdout, stderr } = await runCli(['worker', '--config', 'own.mjs', ...at(database)], {
    cwd: directory,
  })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toContain('Error (CONFIG_INVALID): The config file own.mjs')
  for (const text of says) expect(stderr).toContain(text)
  expect(stderr).not.toContain('s3cr3t')
  expect(stderr).not.toContain('    at ')
})

test('what the library says against a config is told in Korean to whoever asks for that', async () => {
  const wrong = `
    import { createOutbox } from ${compiled('src/outbox.js')}
    export default () => ({ outbox: createOutbox({ notify: 'yes' }), subscriptions: [] })`
  await writeFile(join(directory, 'own.mjs'), wrong)
  const { code, stderr } = await runCli(['worker', '--config', 'own.mjs', '--lang', 'ko'], { cwd: directory })
  expect(code).toBe(1)
  expect(stderr).toContain('설정 파일 own.mjs을(를) 읽을 수 없습니다: 옵션이 올바르지 않습니다(아웃박스):\n')
  expect(stderr).toContain('- notify: true 또는 false이어야 합니다. 지금 값: "yes"')
})

test('a config that is not there is named', async () => {
  const { code, stderr } = await runCli(['worker', '--config', 'own.mjs'], { cwd: directory })
  expect(code).toBe(1)
  expect(stderr).toContain('There is no config file at own.mjs')
})

test.each(['en', 'ko'])(
  'where no config is found, all names that were tried are told: %s',
  async (language) => {
    const { code, stderr } = await runCli(['worker', '--lang', language], { cwd: directory })
    expect(code).toBe(1)
    expect(stderr).toContain(directory)
    expect(stderr).toContain(
      'commitpost.config.js, commitpost.config.mjs, commitpost.config.ts, commitpost.config.mts. ',
    )
  },
)
