// npm run bench -- metrics [--rows 5000000] [--open 100000] [--rounds 20]
// What one collection of the gauges costs where the tables hold millions of events.
import { mkdir, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import type pg from 'pg'
import type { Gauges } from '../src/store/gauge-store.ts'
import { postgresStore } from '../src/store/postgres/index.ts'
import { prepareSchema, SCHEMA } from './support/commitpost.ts'
import { describeMachine } from './support/machine.ts'
import { print } from './support/progress.ts'
import { printBars } from './support/report.ts'
import { type Bar, isMet } from './support/results.ts'
import { openBenchDatabase } from './support/server.ts'
import { median } from './support/statistics.ts'

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '5000000' },
    open: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '20' },
  },
})
const ROWS = Number(values.rows)
const OPEN = Number(values.open)
const ROUNDS = Number(values.rounds)
const LIMITS = { countLimit: 5_000, timeoutMs: 2_000 }
const RESULTS = 'bench/results/metrics.json'

await main()

async function main(): Promise<void> {
  await using database = await openBenchDatabase()
  const { pool } = database
  print(`PostgreSQL ${database.version}: loading ${ROWS} events, all DONE but ${OPEN} in each of four states`)
  await prepareSchema(pool, { count: 1, order: 'none', batchSize: 100, concurrency: 1 })
  await load(pool)
  const gauges = await collect(pool)
  const first = gauges.milliseconds
  const times: number[] = []
  const cpuBefore = database.cpuMicros()
  for (let round = 0; round < ROUNDS; round += 1) times.push((await collect(pool)).milliseconds)
  const cpuAfter = database.cpuMicros()
  const exact = await timed(() => postgresStore({ pool, schema: SCHEMA }).subscriptionStatuses())
  print(`pending: ${sumOf(gauges.result)} (capped: ${gauges.result.capped})`)
  print(`exact counts, as \`commitpost status\` reads them: ${Math.round(exact.milliseconds)} ms`)
  const cpuMs = cpuBefore === null || cpuAfter === null ? Number.NaN : (cpuAfter - cpuBefore) / 1_000 / ROUNDS
  const bars: readonly Bar[] = [
    { name: 'one collection, ms (median)', figure: median(times), bar: 500, is: 'at most' },
    { name: 'the first collection, ms', figure: first, bar: 2_000, is: 'at most' },
    { name: 'CPU of the server for one collection, ms', figure: cpuMs, bar: 500, is: 'at most' },
  ]
  printBars(bars)
  await mkdir('bench/results', { recursive: true })
  const content = {
    bars: bars.map((bar) => ({ ...bar, figure: Number(bar.figure.toPrecision(4)), met: isMet(bar) })),
    rows: ROWS,
    openOfEachKind: OPEN,
    machine: describeMachine(),
    postgres: database.version,
    exactCountsMs: Math.round(exact.milliseconds),
  }
  if (ROWS === 5_000_000) await writeFile(RESULTS, `${JSON.stringify(content, null, 2)}\n`)
}

/** Written as a long life would leave them, without the triggers that would take an hour for it. */
async function load(pool: pg.Pool): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('set session_replication_role = replica')
    await loadDeliveries(client)
    // A trigger of theirs tells why each is dead.
    await client.query('set session_replication_role = origin')
    await client.query(
      `insert into ${SCHEMA}.outbox_dead_letter (subscription, subscription_id, lane, position, event_id, stream, event_type,
              schema_version, aggregate_type, aggregate_id, payload, headers, occurred_at, error_code, error_message, retry_count)
       select 'bench-0', d.subscription_id, 0, e.id, e.event_id, e.stream, e.event_type, 1, e.aggregate_type, e.aggregate_id,
              e.payload, e.headers, e.occurred_at, 'X', 'x', 4
         from ${SCHEMA}.outbox_event e join ${SCHEMA}.outbox_delivery d using (event_id) where d.status = 'DEAD'`,
    )
  } finally {
    client.release(true)
  }
  await pool.query('vacuum analyze')
  await pool.query('checkpoint')
}

async function loadDeliveries(client: pg.PoolClient): Promise<void> {
  const insertDeliveries = (columns: string, expressions: string, where: string): Promise<unknown> =>
    client.query(
      `insert into ${SCHEMA}.outbox_delivery (subscription_id, lane, id, event_id, max_attempts, created_at, ${columns})
       select s.id, 0, e.id, e.event_id, 5, e.created_at, ${expressions}
         from ${SCHEMA}.outbox_event e cross join ${SCHEMA}.outbox_subscription s where ${where}`,
    )
  const kind = (n: number): string => `e.id > ${ROWS - n * OPEN} and e.id <= ${ROWS - (n - 1) * OPEN}`
  await client.query(
    `insert into ${SCHEMA}.outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
     select 'bench.order', 'OrderPlaced', 'order', (i % 100000)::text, '{"total": 12.5}'
       from generate_series(1, $1::int) i`,
    [ROWS],
  )
  await insertDeliveries('status', `'PENDING'`, kind(1))
  await insertDeliveries(
    'status, fresh, held, next_retry_at, attempt_count',
    `'PENDING', false, true, now(), 1`,
    kind(2),
  )
  await insertDeliveries(
    'status, fresh, attempt_count, locked_by, locked_until, lease_token',
    `'PROCESSING', false, 1, 'w', now(), e.id / 500 + 1`,
    kind(3),
  )
  // What workers have in hand is found by their leases, one for each claim.
  await client.query(
    `insert into ${SCHEMA}.outbox_lease (subscription_id, token, worker_id, until, lanes, positions)
     select d.subscription_id, d.lease_token, 'w', now() + interval '1 hour', array[0], array_agg(d.id)
       from ${SCHEMA}.outbox_delivery d where d.status = 'PROCESSING'
      group by d.subscription_id, d.lease_token`,
  )
  await insertDeliveries(
    'status, fresh, attempt_count, last_error_code, last_error_message',
    `'DEAD', false, 5, 'X', 'x'`,
    kind(4),
  )
  await insertDeliveries(
    'status, fresh, attempt_count, processed_at',
    `'DONE', false, 1, now()`,
    `e.id <= ${ROWS - 4 * OPEN}`,
  )
}

function collect(pool: pg.Pool): Promise<Timed<Gauges>> {
  return timed(() => postgresStore({ pool, schema: SCHEMA }).readGauges(LIMITS))
}

interface Timed<Result> {
  readonly result: Result
  readonly milliseconds: number
}

async function timed<Result>(work: () => Promise<Result>): Promise<Timed<Result>> {
  const startedAt = performance.now()
  const result = await work()
  return { result, milliseconds: performance.now() - startedAt }
}

function sumOf({ backlog }: Gauges): number {
  return backlog.reduce((sum, { pending }) => sum + pending, 0)
}
