// npm run bench -- retention [--events 1000000] [--seconds 10] [--share 0.2] [--batch 1000]
// Events are published and delivered all the while; old ones are deleted and archived in every other phase, until none is
// left. What is left of the live throughput meanwhile, as a share of that in the phases between?
import { mkdir, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type pg from 'pg'
import type { RetentionOptions } from '../src/index.ts'
import { benchOutbox, benchSubscriptions, prepareSchema, SCHEMA } from './support/commitpost.ts'
import { describeMachine } from './support/machine.ts'
import { PAYLOAD_SQL, payloadOf } from './support/payload.ts'
import { print } from './support/progress.ts'
import { printBars } from './support/report.ts'
import { type Bar, isMet } from './support/results.ts'
import { openBenchDatabase } from './support/server.ts'
import { median } from './support/statistics.ts'

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '10' },
    share: { type: 'string', default: '0.2' },
    batch: { type: 'string', default: '1000' },
  },
})
const EVENTS = Number(values.events)
const SECONDS = Number(values.seconds)
const FULL = 1_000_000
const RESULTS = 'bench/results/retention.json'
const SETTINGS = { count: 1, order: 'aggregate', batchSize: 1_000, concurrency: 100 } as const
const CLIENTS = 4
const BATCH = 200
const MOST_OPEN = 10_000
const WARM_UP_PHASES = 2
const BEFORE_PHASES = 3
const OLD_DAYS = 60

const RETENTION: RetentionOptions = {
  policies: [
    { name: 'delete', stream: 'bench.deleted', keepDays: 30, action: 'delete' },
    {
      name: 'archive',
      stream: 'bench.archived',
      keepDays: 30,
      action: 'archive',
      archive: { schema: SCHEMA, table: 'old_events' },
    },
  ],
  batchSize: Number(values.batch),
  share: Number(values.share),
}

await main()

async function main(): Promise<void> {
  await using database = await openBenchDatabase()
  const { pool } = database
  print(`PostgreSQL ${database.version}, Node ${process.version}: loading ${EVENTS} old events`)
  await prepareSchema(pool, SETTINGS)
  await loadOld(pool)
  await using live = await startLive(pool)
  for (let phase = 0; phase < WARM_UP_PHASES; phase += 1) await live.rate()
  const before: number[] = []
  for (let phase = 0; phase < BEFORE_PHASES; phase += 1) before.push(await live.rate())
  const { rounds, retainingSeconds } = await alternate(pool, live)
  await assertGone(pool)
  const shares = rounds.map((round) => round.with / round.without)
  const bars: readonly Bar[] = [
    {
      name: 'live throughput while old events go, as a share of that without (median of rounds)',
      figure: median(shares),
      bar: 0.85,
      is: 'at least',
    },
  ]
  const againstBefore = median(rounds.map((round) => round.with)) / median(before)
  print(`against the phases before it began: ${againstBefore.toFixed(3)}`)
  print(`events let go in a second of its own: ${Math.round(EVENTS / retainingSeconds)}`)
  printBars(bars)
  if (EVENTS !== FULL) return
  const content = {
    bars: bars.map((bar) => ({ ...bar, figure: Number(bar.figure.toPrecision(4)), met: isMet(bar) })),
    events: EVENTS,
    retention: RETENTION,
    machine: describeMachine(),
    postgres: database.version,
    secondsOfAPhase: SECONDS,
    againstBefore: Number(againstBefore.toPrecision(4)),
    letGoPerSecond: Math.round(EVENTS / retainingSeconds),
    rounds: rounds.map((round) => ({ without: Math.round(round.without), with: Math.round(round.with) })),
  }
  await mkdir('bench/results', { recursive: true })
  await writeFile(RESULTS, `${JSON.stringify(content, null, 2)}\n`)
}

interface Round {
  readonly without: number
  readonly with: number
}

/** Each round has a phase without and one with, the other way round every other time, until nothing old is left. */
async function alternate(
  pool: pg.Pool,
  live: Live,
): Promise<{ readonly rounds: readonly Round[]; readonly retainingSeconds: number }> {
  const rounds: Round[] = []
  let retainingSeconds = 0
  for (let isDone = false; !isDone; ) {
    const isFirst = rounds.length % 2 === 0
    const earlier = isFirst ? await live.rate() : null
    const began = performance.now()
    const stop = new AbortController()
    const retaining = retain(pool, stop.signal)
    const rate = await live.rate()
    stop.abort()
    isDone = await retaining
    retainingSeconds += (performance.now() - began) / 1_000
    const round = { with: rate, without: earlier ?? (await live.rate()) }
    // Where it ended in the middle of a phase, that one tells nothing, unless there is no other.
    if (!isDone || rounds.length === 0) rounds.push(round)
    const { rows } = await pool.query<{ gone: string }>(
      `select sum(deleted + archived) as gone from ${SCHEMA}.outbox_retention_run`,
    )
    print(
      `round ${rounds.length}: ${Math.round(round.without)} deliveries/s without, ${Math.round(round.with)} with ` +
        `(${(round.with / round.without).toFixed(3)}), ${rows[0]?.gone} events are gone`,
    )
  }
  return { rounds, retainingSeconds }
}

/** True once all policies are done. One that is done is not begun again. */
async function retain(pool: pg.Pool, signal: AbortSignal): Promise<boolean> {
  // Whoever held the run has stopped, and nobody waits for its time to pass.
  await pool.query(`update ${SCHEMA}.outbox_retention_run set held_until = now()`)
  const { retention } = benchOutbox(pool, RETENTION)
  const runs = await retention.status()
  for (const { name, stream } of RETENTION.policies) {
    if (runs.some(({ policy, finishedAt }) => policy === name && finishedAt !== null)) continue
    const [report] = await retention.run({ operator: 'bench', stream, signal })
    if (report?.state !== 'done') return false
  }
  return true
}

interface Live extends AsyncDisposable {
  /** Deliveries a second, over one phase. */
  rate(): Promise<number>
}

/** Publishes and delivers until it is disposed of. */
async function startLive(pool: pg.Pool): Promise<Live> {
  const outbox = benchOutbox(pool)
  let published = 0
  let handled = 0
  let isOver = false
  const worker = outbox.worker(
    benchSubscriptions(SETTINGS, () => {
      handled += 1
    }),
  )
  await worker.start()
  const publish = async (): Promise<void> => {
    while (!isOver) {
      if (published - handled > MOST_OPEN) {
        await sleep(5)
        continue
      }
      const first = published
      published += BATCH
      await outbox.inTransaction(pool, (tx) =>
        outbox.publishAll(
          tx,
          Array.from({ length: BATCH }, (_, index) => ({
            type: 'OrderPlaced' as const,
            aggregateId: (first + index) % 100_000,
            payload: payloadOf(first + index),
          })),
        ),
      )
    }
  }
  const publishers = Array.from({ length: CLIENTS }, publish)
  return {
    rate: async () => {
      const before = handled
      const began = performance.now()
      await sleep(SECONDS * 1_000)
      return (handled - before) / ((performance.now() - began) / 1_000)
    },
    [Symbol.asyncDispose]: async () => {
      isOver = true
      await Promise.all(publishers)
      await worker.stop()
    },
  }
}

/** Half of them to be deleted and half to be archived, all delivered long ago. */
async function loadOld(pool: pg.Pool): Promise<void> {
  const client = await pool.connect()
  const old = `now() - ${OLD_DAYS} * interval '1 day'`
  await client.query('begin; set local session_replication_role = replica')
  await client.query(
    `insert into ${SCHEMA}.outbox_event (event_id, stream, event_type, aggregate_type, aggregate_id, payload, created_at)
     select overlay(${SCHEMA}.outbox_uuid_v7()::text placing '019000' from 1 for 6)::uuid,
            case when i <= $1::int / 2 then 'bench.deleted' else 'bench.archived' end, 'OrderPlaced', 'order',
            (i % 100000)::text, ${PAYLOAD_SQL}, ${old} + i * interval '1 millisecond'
       from generate_series(1, $1::int) i`,
    [EVENTS],
  )
  await client.query(
    `insert into ${SCHEMA}.outbox_delivery (subscription_id, lane, id, event_id, ordering_key, status, fresh, attempt_count,
            max_attempts, last_attempt_at, processed_at, updated_at)
     select s.id, ${SCHEMA}.outbox_lane_of(k.key, s.lanes), e.id, e.event_id, k.key, 'DONE', false, 1, 5, ${old}, ${old}, ${old}
       from ${SCHEMA}.outbox_event e cross join ${SCHEMA}.outbox_subscription s
      cross join lateral (select e.aggregate_type || ':' || e.aggregate_id as key) k`,
  )
  await client.query('commit')
  client.release()
  await pool.query(`vacuum (analyze) ${SCHEMA}.outbox_event, ${SCHEMA}.outbox_delivery`)
  await pool.query('checkpoint')
}

async function assertGone(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query<{ left: number; archived: number }>(
    `select (select count(*)::int from ${SCHEMA}.outbox_event where stream <> 'bench.order') as left,
            (select count(*)::int from ${SCHEMA}.old_events) as archived`,
  )
  const [found] = rows
  if (found?.left !== 0 || found.archived !== Math.ceil(EVENTS / 2)) {
    throw new Error(
      `${found?.left} old events are left and ${found?.archived} archived: the figure means nothing`,
    )
  }
}
