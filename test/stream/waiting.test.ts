import { afterAll, beforeAll, expect, test } from 'vitest'
import { resolveAlertOptions } from '../../src/alert/alert-options.ts'
import { findConditions } from '../../src/alert/conditions.ts'
import { quoteSchema } from '../../src/store/postgres/identifiers.ts'
import { PostgresMonitorStore } from '../../src/store/postgres/monitor-store.ts'
import { readGauges } from '../../src/store/postgres/read-gauges.ts'
import { subscriptionStatuses } from '../../src/store/postgres/subscription-statuses.ts'
import { explain, mostRowsScanned, seqScans } from '../hazards/plan.ts'
import { SteppingPool } from '../hazards/stepping-pool.ts'
import { comes } from '../support/patience.ts'
import { type StreamScene, type StreamServer, startStreamServer, stopReader, streamScene } from './scene.ts'

let server: StreamServer

beforeAll(async () => {
  server = await startStreamServer(18)
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
})

const LOOK = { most: 101, stuckAfterMs: 300_000, leastForMean: 3, workerMissingMs: 60_000 }

/** As if all that is there had been there for so long. */
async function age({ pool, schema }: StreamScene, minutes: number): Promise<void> {
  await pool.query(
    `begin; set local session_replication_role = replica;
     update ${schema}.outbox_event set created_at = now() - interval '${minutes} minutes';
     update ${schema}.outbox_stream set created_at = now() - interval '1 day'; commit`,
  )
}

async function figuresOf({ pool, schema }: StreamScene): Promise<object> {
  const store = new PostgresMonitorStore({ pool, own: false }, quoteSchema(schema))
  const figures = await store.readFigures(LOOK)
  const letters = { count: 0, byType: [], oldest: null }
  const { rules } = resolveAlertOptions({}, { name: 'nobody', send: () => Promise.resolve() })
  const conditions = findConditions(rules, { letters, figures, eventsPerSecond: null })
  const [{ pending, stuck, workers } = { pending: null, stuck: null, workers: null }] = figures.subscriptions
  return { pending, stuck, workers, rules: conditions.map(({ rule }) => rule) }
}

const gaugesOf = ({ pool, schema }: StreamScene): ReturnType<typeof readGauges> =>
  readGauges(pool, quoteSchema(schema), { countLimit: 50, timeoutMs: 20_000 })

test('L7 U9 events that wait in the log are told of: where nobody gets on with it, and where nobody reads it', async () => {
  await using scene = await streamScene(server.url)
  let goOn: () => void = () => undefined
  const stuck = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const watched = scene.work('mirror', { on: {} }, () => stuck)
  await watched.worker.active()
  await watched.saw('streaming')
  await scene.place(1, 2, 3)
  await comes('the handler runs', () => watched.events.length > 0)
  expect(await figuresOf(scene)).toMatchObject({ pending: 0, rules: [] })
  await age(scene, 3)
  expect(await figuresOf(scene)).toEqual({ pending: 3, stuck: 0, workers: 1, rules: ['oldestPending'] })
  expect((await gaugesOf(scene)).backlog).toMatchObject([{ subscription: 'mirror', pending: 3, held: 0 }])

  goOn()
  await comes('all is recorded', async () => (await gaugesOf(scene)).backlog.length === 0)
  expect(await figuresOf(scene)).toMatchObject({ pending: 0, rules: [] })

  await stopReader(watched, scene)
  await scene.place(4)
  await age(scene, 6)
  expect(await figuresOf(scene)).toEqual({
    pending: 1,
    stuck: 1,
    workers: 0,
    rules: ['oldestPending', 'workerMissing'],
  })
  expect(await scene.outbox.status()).toMatchObject([
    { name: 'mirror', counts: { PENDING: 1, DONE: 0 }, oldestPendingSeconds: expect.closeTo(360, -2) },
  ])
})

test('E14 to count them reads no more where there are many, open transactions among them', async () => {
  await using scene = await streamScene(server.url)
  const watched = scene.work('mirror', { on: {} })
  await watched.worker.active()
  await watched.saw('streaming')
  const open = await scene.pool.connect()
  await open.query('begin')
  await open.query(
    `insert into ${scene.schema}.outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
     values ('shop.order', 'OrderPlaced', 'order', 'late', '{}')`,
  )
  const { rows } = await open.query<{ xid: string }>('select pg_current_xact_id()::text as xid')
  const openIds = async (): Promise<string> =>
    String((await scene.progress())['snapshot']).split(':')[2] ?? ''
  await comes('a snapshot shows it as open', async () =>
    (await openIds()).split(',').includes(rows[0]?.xid ?? ''),
  )
  await stopReader(watched, scene)
  await open.query('commit')
  open.release()
  await scene.pool.query(
    `insert into ${scene.schema}.outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
     select 'shop.order', 'OrderPlaced', 'order', n::text, '{}' from generate_series(1, 20000) n`,
  )
  await age(scene, 6)
  expect(await figuresOf(scene)).toMatchObject({ pending: 101, stuck: 101 })
  const pool = new SteppingPool(scene.pool)
  const gauges = await readGauges(pool, quoteSchema(scene.schema), { countLimit: 50, timeoutMs: 20_000 })
  expect(gauges).toMatchObject({ backlog: [{ pending: 51 }], capped: true })
  const client = await scene.pool.connect()
  await client.query(
    pool
      .lastSent(/set local/)
      .text.replace('set transaction read only;', '')
      .replaceAll('set local', 'set'),
  )
  const plan = await explain(client, pool.lastSent(/outbox_stream/))
  client.release(true)
  expect(mostRowsScanned(plan)).toBeLessThanOrEqual(51)
  expect(seqScans(plan).filter((table) => table === 'outbox_event' || table === 'outbox_delivery')).toEqual(
    [],
  )
})

test('L7 status counts what waits in a log that nobody reads up to a limit, and says where it ended there', async () => {
  await using scene = await streamScene(server.url)
  const watched = scene.work('mirror', { on: {} })
  await watched.worker.active()
  await watched.saw('streaming')
  await stopReader(watched, scene)
  await scene.pool.query(
    `insert into ${scene.schema}.outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
     select 'shop.order', 'OrderPlaced', 'order', n::text, '{}' from generate_series(1, 30) n`,
  )
  const statusWith = async (mostInLog: number): Promise<unknown> =>
    (await subscriptionStatuses(scene.pool, quoteSchema(scene.schema), mostInLog))[0]
  expect(await statusWith(20)).toMatchObject({ counts: { PENDING: 0 }, pendingCapped: false })
  await age(scene, 6)
  expect(await statusWith(20)).toMatchObject({ counts: { PENDING: 20 }, pendingCapped: true })
  expect(await statusWith(31)).toMatchObject({ counts: { PENDING: 30 }, pendingCapped: false })
  // Not one of those that were looked at is for it: it may be that one behind them is.
  await scene.pool.query(`update ${scene.schema}.outbox_subscription set event_types = '{Nothing}'`)
  expect(await statusWith(20)).toMatchObject({ counts: { PENDING: 0 }, pendingCapped: true })
})
