import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { Journal } from '../../src/cli/demo/journal.ts'
import { type DemoResult, type Findings, judge } from '../../src/cli/demo/result.ts'
import { sellSteadily } from '../../src/cli/demo/sell-steadily.ts'
import { webhookOf } from '../../src/cli/demo/shop.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { comes } from '../support/patience.ts'
import { isRunning } from '../support/program.ts'
import { runCli, startCli } from './support.ts'

type Line = { readonly kind: string } & Partial<DemoResult> & {
    readonly url?: string
    readonly published?: number
  }

function jsonLines(stdout: string): readonly Line[] {
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
}

test('the demo on a server of its own accounts for every event', async () => {
  const { code, stdout, stderr } = await runCli(['demo', '--for', '3s', '--rate', '100/s', '--json'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const lines = jsonLines(stdout)
  expect(lines[0]).toMatchObject({
    kind: 'started',
    embedded: true,
    schema: 'commitpost',
    rate: 100,
    forMs: 3_000,
  })
  expect(lines.filter(({ kind }) => kind === 'progress')).not.toEqual([])
  const result = lines.at(-1)
  const published = result?.events ?? 0
  expect(published).toBeGreaterThan(50)
  expect(result).toMatchObject({
    kind: 'result',
    holds: true,
    subscriptions: [
      { name: 'ledger', published, delivered: published, pending: 0, dead: 0, holds: true },
      { name: 'notifications', published, delivered: published, pending: 0, dead: 0, holds: true },
      { name: 'webhooks', published, pending: 0, holds: true },
    ],
    rolledBack: { deliveredEvents: 0 },
    ledger: { entries: published, violations: 0 },
  })
  expect(result?.total?.dead).toBeGreaterThan(0)
  expect(result?.rolledBack?.transactions).toBeGreaterThan(0)
  const gone = new pg.Client({ connectionString: lines[0]?.url })
  await expect(gone.connect()).rejects.toThrow('ECONNREFUSED')
})

test('Ctrl-C ends it the same way, in Korean as well', async () => {
  const url = inject('databaseUrl')
  const demo = startCli(['demo', '--database', url, '--lang', 'ko'])
  const where = await demo.line('스키마 commitpost_demo_')
  const schema = /commitpost_demo_[0-9a-f]+/.exec(where)?.[0] ?? ''
  try {
    await demo.line('데드 레터 0')
    demo.signal('SIGINT')
    const { code, stdout, stderr } = await demo.ended
    expect(code).toBe(0)
    expect(stdout).toContain('등식이 성립합니다.')
    expect(stderr).toContain(`"${schema}" 스키마에 남아 있습니다`)
    const status = await runCli(['status', '--database', url, '--schema', schema, '--json'])
    expect(JSON.parse(status.stdout)).toMatchObject({ subscriptions: [{ name: 'ledger' }, {}, {}] })
    const again = await runCli(['demo', '--for', '1s', '--database', url, '--schema', schema])
    expect(again.code).toBe(1)
    expect(again.stderr).toContain('DEMO_SCHEMA_EXISTS')
  } finally {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query(`drop schema if exists ${schema} cascade`)
    await client.end()
  }
})

test('a second Ctrl-C ends it at once, and its server with it', async () => {
  const demo = startCli(['demo', '--json'])
  await demo.line('"started"')
  const started = jsonLines(await demo.line('"started"'))[0]
  const client = new pg.Client({ connectionString: started?.url })
  client.on('error', () => undefined)
  await client.connect()
  const { rows } = await client.query(
    `select split_part(pg_read_file('postmaster.pid'), e'\\n', 1)::integer as pid`,
  )
  const cut = new Promise<void>((resolve) => client.on('end', resolve))
  demo.signal('SIGINT')
  await demo.line('"draining"')
  demo.signal('SIGINT')
  expect(await demo.ended).toMatchObject({ code: 130 })
  await cut
  await comes('its server is gone', () => !isRunning((rows[0] as { pid: number }).pid))
})

test('an event that the shop did not sell breaks the equation, and the demo ends with 1', async () => {
  const demo = startCli(['demo', '--json'])
  const started = jsonLines(await demo.line('"started"'))[0]
  const client = new pg.Client({ connectionString: started?.url })
  await client.connect()
  await client.query(
    `insert into commitpost.outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
     values ('elsewhere', 'ThingHappened', 'thing', '1', '{}')`,
  )
  await client.end()
  demo.signal('SIGINT')
  const { code, stdout } = await demo.ended
  expect(code).toBe(1)
  expect(jsonLines(stdout).at(-1)).toMatchObject({ kind: 'result', holds: false })
})

const sound: Findings = {
  counts: { published: 10, rolledBack: 2, ghosts: 0 },
  latency: { p50: 1, p99: 2 },
  events: 10,
  statuses: ['a', 'b'].map((name) => ({
    name,
    state: 'active',
    paused: false,
    orderBy: 'none',
    counts: { PENDING: 1, PROCESSING: 1, DONE: 7, DEAD: 1 },
    pendingCapped: false,
    retrying: 1,
    oldestPendingSeconds: 1,
    unresolvedDeadLetters: 1,
    waitsFor: null,
  })),
  ledger: { entries: 7, orders: 3, violations: 0 },
}

test('the equation holds when everything published is delivered, pending or dead', () => {
  expect(judge(sound)).toMatchObject({
    holds: true,
    total: { published: 20, delivered: 14, pending: 4, dead: 2, holds: true },
  })
})

test.each([
  ['an event is lost', { events: 9 }],
  ['an event was published that nobody committed', { counts: { ...sound.counts, published: 9 } }],
  [
    'a delivery is lost',
    { statuses: sound.statuses.map((one) => ({ ...one, counts: { ...one.counts, DONE: 6 } })) },
  ],
  ['an event of a rolled back transaction was delivered', { counts: { ...sound.counts, ghosts: 1 } }],
  ['the ledger saw an order out of order', { ledger: { ...sound.ledger, violations: 1 } }],
])('it does not hold when %s', (_, fault) => {
  expect(judge({ ...sound, ...fault }).holds).toBe(false)
})

test('the journal notices an event of a rolled back transaction, whichever comes first', () => {
  const journal = new Journal(new ManualClock(), 3)
  journal.written(['early', 'late', 'good'])
  journal.arrived('early', 1)
  journal.rolledBack(['early', 'late'])
  journal.arrived('late', 1)
  journal.committed(['good'])
  journal.arrived('good', 1)
  expect(journal.counts).toEqual({ published: 1, rolledBack: 1, ghosts: 2 })
})

test('the journal measures first attempts only', async () => {
  const clock = new ManualClock()
  const journal = new Journal(clock, 2)
  journal.written(['event'])
  await clock.advance(30)
  journal.arrived('event', 1)
  journal.handled('event', 1)
  await clock.advance(1_000)
  journal.handled('event', 2)
  expect(journal.latency()).toEqual({ p50: 30, p99: 30 })
})

test('the journal tells the last moments apart from the whole run', async () => {
  const clock = new ManualClock()
  const journal = new Journal(clock, 1)
  const deliver = async (number: number, ms: number): Promise<void> => {
    journal.written([`event-${number}`])
    await clock.advance(ms)
    journal.arrived(`event-${number}`, 1)
    journal.handled(`event-${number}`, 1)
  }
  expect(journal.recentLatency()).toEqual({ p50: null, p99: null })
  for (let number = 0; number < 600; number += 1) await deliver(number, number < 100 ? 900 : 10)
  expect(journal.latency()).toEqual({ p50: 10, p99: 900 })
  expect(journal.recentLatency()).toEqual({ p50: 10, p99: 10 })
})

test('selling keeps to its rate', async () => {
  const clock = new ManualClock()
  const over = new AbortController()
  let sold = 0
  const selling = sellSteadily({
    rate: 50,
    clock,
    signal: over.signal,
    sell: async () => {
      sold += 1
    },
  })
  for (let tick = 0; tick < 100; tick += 1) await clock.advance(10)
  over.abort()
  await selling
  expect(sold).toBeGreaterThanOrEqual(50)
  expect(sold).toBeLessThanOrEqual(52)
})

test('selling ends with the first sale that fails', async () => {
  const selling = sellSteadily({
    rate: 50,
    clock: new ManualClock(),
    signal: new AbortController().signal,
    sell: () => Promise.reject(new Error('no database')),
  })
  await expect(selling).rejects.toThrow('no database')
})

test('one webhook in five is flaky and one in fifty is gone', () => {
  const fates = Array.from({ length: 50 }, (_, number) => webhookOf(`customer-${number}`))
  expect(fates.filter((fate) => fate === 'flaky')).toHaveLength(10)
  expect(fates.filter((fate) => fate === 'gone')).toHaveLength(1)
})
