import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestDatabaseWithTables, type TestDatabase } from '../support/database.ts'
import { type Exposition, parseExposition } from '../support/exposition.ts'
import { comes } from '../support/patience.ts'
import { at, makeDeadLetter, type RunningCli, runCli, startCli } from './support.ts'

let database: TestDatabase
let running: RunningCli | null = null

beforeEach(async () => {
  database = await createTestDatabaseWithTables()
  await makeDeadLetter(database)
})
afterEach(async () => {
  running?.signal('SIGKILL')
  await running?.ended
  running = null
  await database.drop()
})

async function serve(...args: readonly string[]): Promise<{ readonly url: string; readonly line: string }> {
  running = startCli(['metrics', '--port', '0', ...args, ...at(database)])
  const line = await running.line('http://')
  return { url: /http:\S+\/metrics/.exec(line)?.[0] ?? '', line }
}

/** Until there are gauges in it: a scrape does not wait long for a busy server. */
async function scrape(url: string): Promise<Exposition & { readonly answer: Response }> {
  for (;;) {
    const answer = await fetch(url)
    const read = parseExposition(await answer.text())
    if (read.samples.get('everbit_outbox_collection_success') !== 0) return { ...read, answer }
  }
}

test('metrics serves the gauges on this machine only, until SIGTERM', async () => {
  const { url, line } = await serve('--prefix', 'everbit_outbox')
  expect(line).toBe(`Metrics are served at ${url}. Ctrl-C ends it.`)
  expect(new URL(url).hostname).toBe('127.0.0.1')
  const { answer, samples } = await scrape(url)
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const [[stream] = ['']] = [...samples].filter(([key]) => key.startsWith('everbit_outbox_dead{'))
  expect(stream).toContain('stream=')
  expect(samples.get(stream)).toBe(1)
  expect(samples.get('everbit_outbox_subscription_dead{subscription="mailer"}')).toBe(1)

  expect((await fetch(url, { method: 'POST' })).status).toBe(405)
  expect((await fetch(new URL('/', url))).status).toBe(404)
  const head = await fetch(url, { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])

  running?.signal('SIGTERM')
  expect(await running?.ended).toMatchObject({ code: 0 })
})

test('metrics --once prints them, and --json the figures', async () => {
  const once = await runCli(['metrics', '--once', ...at(database)])
  expect(once.code).toBe(0)
  expect(parseExposition(once.stdout).samples.get('commitpost_collection_success')).toBe(1)

  const json = await runCli(['metrics', '--json', ...at(database)])
  expect(JSON.parse(json.stdout)).toMatchObject({
    schema: database.schema,
    backlog: [],
    deadLetters: [{ subscription: 'mailer', eventType: 'OrderPlaced', count: 1 }],
    subscriptions: [{ subscription: 'mailer', state: 'active', paused: false, workers: 0 }],
    capped: false,
  })
})

test('metrics --once waits for a database that is busy for longer than a scrape may', async () => {
  const locker = await database.pool.connect()
  await locker.query('begin; lock table outbox_dead_letter in access exclusive mode')
  let isOver = false
  const printing = runCli(['metrics', '--once', ...at(database)]).finally(() => {
    isOver = true
  })
  await comes('it has waited for longer than that, or has given up', async () => {
    const { rows } = await database.pool.query(
      `select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'
          and clock_timestamp() > query_start + interval '3 seconds'`,
    )
    return rows.length > 0 || isOver
  })
  await locker.query('rollback')
  locker.release()
  const { stdout } = await printing
  expect(parseExposition(stdout).samples.get('commitpost_collection_success')).toBe(1)
})

test('metrics speaks Korean', async () => {
  const { line } = await serve('--lang', 'ko')
  expect(line).toContain('메트릭을 http://127.0.0.1:')
})

test('metrics says why it cannot serve, and which prefix is none', async () => {
  const { url } = await serve()
  const inUse = await runCli(['metrics', '--port', new URL(url).port, ...at(database)])
  expect({ code: inUse.code, stdout: inUse.stdout }).toEqual({ code: 1, stdout: '' })
  expect(inUse.stderr).toContain('Error (CANNOT_LISTEN): Metrics cannot be served at 127.0.0.1:')
  expect(inUse.stderr).toContain('EADDRINUSE')

  for (const prefix of ['9lives', 'a b', 'outbox_', '']) {
    const refused = await runCli(['metrics', '--once', '--prefix', prefix, ...at(database)])
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' })
    expect(refused.stderr).toContain('--prefix')
  }
  const port = await runCli(['metrics', '--port', '65536', ...at(database)])
  expect(port.stderr).toContain('--port must be a whole number from 0 to 65535')
})
