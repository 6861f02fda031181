// npm run bench -- verify [--events 1000000] [--subscriptions 1] [--rounds 5]
// A day of events, all delivered but a few, among as many of the days before and after: how long does it take to prove
// that none of that day is lost?
import { mkdir, writeFile } from 'node:fs/promises'
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { benchOutbox, prepareSchema, SCHEMA } from './support/commitpost.ts'
import { describeMachine } from './support/machine.ts'
import { PAYLOAD_SQL } from './support/payload.ts'
import { print } from './support/progress.ts'
import { printBars } from './support/report.ts'
import { type Bar, isMet } from './support/results.ts'
import { type BenchDatabase, openBenchDatabase } from './support/server.ts'
import { median } from './support/statistics.ts'

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '1000000' },
    subscriptions: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '5' },
  },
})
const events = Number(values.events)
const subscriptions = Number(values.subscriptions)
const rounds = Number(values.rounds)
const DAY_MS = 86_400_000
const FULL = 1_000_000
const DAYS = [-1, 0, 1]
const RESULTS = 'bench/results/verify.json'
const since = new Date('2026-01-02T00:00:00Z')
const until = new Date(since.getTime() + DAY_MS)

await main()

async function main(): Promise<void> {
  await using database = await openBenchDatabase()
  print(
    `PostgreSQL ${database.version}, Node ${process.version}: ${events} events a day, ${subscriptions} subscriptions`,
  )
  await prepareSchema(database.pool, { count: subscriptions, order: 'none', batchSize: 1, concurrency: 1 })
  for (const day of DAYS) await loadDay(database, new Date(since.getTime() + day * DAY_MS))
  await database.pool.query(`vacuum (analyze) ${SCHEMA}.outbox_event, ${SCHEMA}.outbox_delivery`)
  const day = await measure(database, 'one day of three', { since, until })
  const all = await measure(database, 'all three days', {})
  const bars: readonly Bar[] = [
    { name: 'a day among three, ms (median)', figure: day.milliseconds, bar: 1_000, is: 'under' },
    {
      name: 'all three days, ms for each (median)',
      figure: all.milliseconds / DAYS.length,
      bar: 1_000,
      is: 'under',
    },
  ]
  printBars(bars)
  if (events !== FULL || subscriptions !== 1) return
  const content = {
    bars: bars.map((bar) => ({ ...bar, figure: Number(bar.figure.toPrecision(4)), met: isMet(bar) })),
    eventsOfADay: events,
    days: DAYS.length,
    cpuMsOfADay: day.cpuMs,
    cpuMsOfAllDays: all.cpuMs,
    machine: describeMachine(),
    postgres: database.version,
  }
  await mkdir('bench/results', { recursive: true })
  await writeFile(RESULTS, `${JSON.stringify(content, null, 2)}\n`)
}

/** A day of events as they are a while later. Rows are written once: a table in use is reused, not swollen. */
async function loadDay({ pool }: BenchDatabase, start: Date): Promise<void> {
  const client = await pool.connect()
  await client.query('begin; set local session_replication_role = replica')
  await client.query(
    `insert into ${SCHEMA}.outbox_event (stream, event_type, aggregate_type, aggregate_id, payload, created_at)
     select 'bench.order', 'OrderPlaced', 'order', (i % 1000)::text, ${PAYLOAD_SQL},
            $2::timestamptz + (i - 1) * ($3::float8 / $1) * interval '1 millisecond'
       from generate_series(1, $1::int) i`,
    [events, start.toISOString(), DAY_MS],
  )
  await client.query(
    `insert into ${SCHEMA}.outbox_delivery (subscription_id, lane, id, event_id, status, fresh, attempt_count, max_attempts,
            last_attempt_at, processed_at)
     select s.id, 0, e.id, e.event_id, case when e.id % 1000 = 0 then 'PENDING' else 'DONE' end, e.id % 1000 = 0, 1, 5,
            case when e.id % 1000 <> 0 then now() end, case when e.id % 1000 <> 0 then now() end
       from ${SCHEMA}.outbox_event e cross join ${SCHEMA}.outbox_subscription s
      where e.created_at >= $1 and e.created_at < $2`,
    [start.toISOString(), new Date(start.getTime() + DAY_MS).toISOString()],
  )
  await client.query('commit')
  client.release()
}

interface Measured {
  readonly milliseconds: number
  /** CPU time of the server; null where it cannot be read. */
  readonly cpuMs: number | null
}

/** The medians over all rounds. */
async function measure(database: BenchDatabase, what: string, window: object): Promise<Measured> {
  const { proof } = benchOutbox(database.pool)
  const took: number[] = []
  const cpu: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const cpuBefore = database.cpuMicros()
    const began = performance.now()
    const report = await proof.verify(window)
    const milliseconds = performance.now() - began
    const cpuAfter = database.cpuMicros()
    if (!report.holds) throw new Error(`It does not hold: ${JSON.stringify(report)}`)
    took.push(milliseconds)
    if (cpuBefore !== null && cpuAfter !== null) cpu.push((cpuAfter - cpuBefore) / 1_000)
    const matched = report.subscriptions.map((subscription) => subscription.matched).join(', ')
    print(
      `${what}, round ${round + 1}: ${milliseconds.toFixed(0)} ms, CPU of the server ${cpu.at(-1) ?? 'unknown'} ms, ` +
        `matched ${matched}`,
    )
  }
  return { milliseconds: median(took), cpuMs: cpu.length === 0 ? null : median(cpu) }
}
