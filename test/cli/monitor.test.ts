import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { migrateUp } from '../../src/store/postgres/migrate.ts'
import { deafUrl, Receiver } from '../alert/receiver.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { compiledDirectory } from '../support/program.ts'
import { at, type CliResult, makeDeadLetter, runCli, startCli } from './support.ts'

let database: TestDatabase
let directory: string

beforeEach(async () => {
  database = await createTestDatabase()
  directory = await mkdtemp(join(tmpdir(), 'commitpost-config-'))
})
afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
  await database.drop()
})

const compiled = (path: string): string => JSON.stringify(pathToFileURL(join(compiledDirectory, path)).href)

/** A config whose alerts go to the given place. */
const configFor = (alerts: string): string => `
  import pg from ${JSON.stringify(import.meta.resolve('pg'))}
  import { createOutbox, defineEvents, defineWorkerConfig, slackSink } from ${compiled('src/index.js')}
  import { postgresStore } from ${compiled('src/store/postgres/index.js')}

  export default defineWorkerConfig(({ databaseUrl, schema }) => {
    const pool = new pg.Pool({ connectionString: databaseUrl })
    const events = defineEvents({ OrderPlaced: { stream: 'shop', aggregate: 'order' } })
    const outbox = createOutbox({ store: postgresStore({ pool, schema }), events })
    const mailer = outbox.subscription('mailer', { on: { OrderPlaced: () => undefined } })
    return { outbox, subscriptions: [mailer], options: { alerts: ${alerts} }, close: () => pool.end() }
  })
`

const once = (...args: readonly string[]): Promise<CliResult> =>
  runCli(['monitor', '--once', ...args, ...at(database)], { cwd: directory })

describe('monitor --once', () => {
  test('says that all is well, and ends with 0', async () => {
    await migrateUp(database.pool, { schema: database.schema })
    const { code, stdout, stderr } = await once()
    expect(stderr).toBe('All is well: no rule has anything to say.\n')
    expect(stdout).toContain('REPORT')
    expect(code).toBe(0)
    expect(JSON.parse((await once('--json')).stdout)).toEqual({
      at: expect.any(String) as string,
      conditions: [],
      deadLetters: { count: 0, byType: [], oldest: null },
      subscriptions: [],
      vanishedWorkers: [],
      eventsPerSecond: null,
    })
  })

  test('prints what holds by the default rules, ends with 1, tells nobody and changes nothing', async () => {
    await makeDeadLetter(database)
    await database.pool.query(
      `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
       values ('shop.order', 'OrderPlaced', 'order', '8', '{}')`,
    )
    await database.pool.query(
      `update outbox_delivery set created_at = now() - interval '2 minutes' where status = 'PENDING'`,
    )
    const { code, stdout } = await once('--json')
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({
      conditions: [
        { rule: 'oldestPending', key: 'oldestPending:mailer', subscription: 'mailer', threshold: 60_000 },
        { rule: 'workerMissing', key: 'workerMissing:mailer' },
      ],
      deadLetters: { count: 1, byType: [{ eventType: 'OrderPlaced', count: 1 }] },
      subscriptions: [{ name: 'mailer', pending: 1, dead: 1 }],
    })
    const korean = await once('--lang', 'ko')
    expect(korean.stdout).toContain('구독 "mailer"에서 가장 오래된 대기 전달이')
    expect(korean.stderr).toBe('해당하는 조건: 2건.\n')
    const { rows } = await database.pool.query(
      `select (select count(*) from outbox_alarm)::int as alarms, (select epoch from outbox_monitor)::int as turns,
              (select count(*) from outbox_dead_letter where told_at is null)::int as untold`,
    )
    expect(rows).toEqual([{ alarms: 0, turns: 0, untold: 1 }])
  })

  test('with a config tells its sinks, once', async () => {
    await using slack = await Receiver.start()
    const id = await makeDeadLetter(database)
    const alerts = `{ sinks: [slackSink({ url: ${JSON.stringify(slack.url)} })] }`
    await writeFile(join(directory, 'mine.mjs'), configFor(alerts))
    const { code, stdout } = await once('--config', 'mine.mjs', '--json')
    expect(JSON.parse(stdout)).toMatchObject({ told: [`deadLetter:${id}`], untold: [] })
    expect(code).toBe(0)
    const again = await once('--config', 'mine.mjs')
    expect(again.stderr).toBe('All is well: no rule has anything to say.\nAlerts sent: 0.\n')
    expect(slack.requests).toHaveLength(1)
  })

  test('says what could not be told and why, without the address', async () => {
    await makeDeadLetter(database)
    const url = `${new URL(await deafUrl()).origin}/SECRET`
    const alerts = `{ sinks: [slackSink({ url: '${url}' })], attempts: 1 }`
    await writeFile(join(directory, 'mine.mjs'), configFor(alerts))
    const { code, stdout, stderr } = await once('--config', 'mine.mjs')
    expect(code).toBe(1)
    expect(stderr).toMatch(
      /^Alerts sent: 0\. Alerts that could not be sent: 1\.\nSlack did not take it: .*ECONNREFUSED/i,
    )
    const korean = await once('--config', 'mine.mjs', '--lang', 'ko')
    expect(korean.stderr).toMatch(
      /^보낸 알림: 0건\. 보내지 못한 알림: 1건\.\nSlack에 보내지 못했습니다: .*ECONNREFUSED/i,
    )
    const json = await once('--config', 'mine.mjs', '--json')
    expect(JSON.parse(json.stdout)).toMatchObject({
      untold: [expect.stringMatching(/^deadLetter:/)],
      failures: [{ sink: 'slack', error: expect.stringContaining('ECONNREFUSED') }],
    })
    expect(stdout + stderr + korean.stderr + json.stdout).not.toContain('SECRET')
  })
})

test('monitor runs on until it is told to end, and prints what a config sends nowhere else', async () => {
  const id = await makeDeadLetter(database)
  await writeFile(join(directory, 'commitpost.config.mjs'), configFor('{ everyMs: 50 }'))
  const monitor = startCli(['monitor', ...at(database)], { cwd: directory })
  await monitor.line(`commitpost dlq show ${id}`)
  monitor.signal('SIGTERM')
  const { code, stdout, stderr } = await monitor.ended
  expect(code).toBe(0)
  expect(stdout).toContain('DLQ ALERT')
  expect(stderr).toBe('Monitor started with commitpost.config.mjs.\nMonitor stopped.\n')
})

test('monitor without a config and without --once says what is missing', async () => {
  const { code, stderr } = await runCli(['monitor', ...at(database)], { cwd: directory })
  expect(code).not.toBe(0)
  expect(stderr).toContain('CONFIG_INVALID')
})
