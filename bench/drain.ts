// npm run bench -- drain [--events 100000] [--rounds 3] [--order none|aggregate] [--keys 100000] [--batch 1000]
// Loads a backlog, then times one worker with a no-op handler until every delivery is DONE.
import { parseArgs } from 'node:util'
import { benchOutbox, benchSubscriptions, loadBacklog, prepareSchema, SCHEMA } from './support/commitpost.ts'
import { type BenchDatabase, openBenchDatabase } from './support/server.ts'

interface DrainOptions {
  readonly events: number
  readonly rounds: number
  readonly order: 'none' | 'aggregate'
  readonly keys: number
  readonly batch: number
}

interface Round {
  readonly perSecond: number
  readonly nodeMicros: number
  readonly postgresMicros: number | null
}

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '3' },
    order: { type: 'string', default: 'none' },
    keys: { type: 'string', default: '100000' },
    batch: { type: 'string', default: '1000' },
  },
})
const options: DrainOptions = {
  events: Number(values.events),
  rounds: Number(values.rounds),
  order: values.order === 'aggregate' ? 'aggregate' : 'none',
  keys: Number(values.keys),
  batch: Number(values.batch),
}

await main()

async function main(): Promise<void> {
  await using database = await openBenchDatabase()
  print(`PostgreSQL ${database.version}, Node ${process.version}, ${JSON.stringify(options)}`)
  const rounds: Round[] = []
  for (let round = 1; round <= options.rounds; round += 1) {
    const result = await drain(database)
    rounds.push(result)
    print(`round ${round}: ${describe(result)}`)
  }
  const sorted = rounds.toSorted((a, b) => a.perSecond - b.perSecond)
  const median = sorted[Math.floor(sorted.length / 2)]
  if (median !== undefined) print(`median:  ${describe(median)}`)
}

async function drain(database: BenchDatabase): Promise<Round> {
  const { pool } = database
  const settings = { count: 1, order: options.order, batchSize: options.batch, concurrency: 100 }
  let handled = 0
  let finish: () => void = () => undefined
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  const onEvent = (): void => {
    handled += 1
    if (handled === options.events) finish()
  }
  await prepareSchema(pool, settings)
  await loadBacklog(pool, options.events, options.keys)
  await pool.query('checkpoint')
  const worker = benchOutbox(pool).worker(benchSubscriptions(settings, onEvent))
  const cpuBefore = process.cpuUsage()
  const postgresBefore = database.cpuMicros()
  const startedAt = performance.now()
  await worker.start()
  await finished
  await worker.stop()
  const seconds = (performance.now() - startedAt) / 1_000
  const cpu = process.cpuUsage(cpuBefore)
  const postgresAfter = database.cpuMicros()
  await assertAllDone(database)
  return {
    perSecond: options.events / seconds,
    nodeMicros: (cpu.user + cpu.system) / options.events,
    postgresMicros:
      postgresBefore === null || postgresAfter === null
        ? null
        : (postgresAfter - postgresBefore) / options.events,
  }
}

async function assertAllDone({ pool }: BenchDatabase): Promise<void> {
  const { rows } = await pool.query<{ open: string }>(
    `select count(*) as open from ${SCHEMA}.outbox_delivery where status <> 'DONE'`,
  )
  if (rows[0]?.open !== '0')
    throw new Error(`${rows[0]?.open} deliveries are not DONE: the figure means nothing`)
}

function describe({ perSecond, nodeMicros, postgresMicros }: Round): string {
  const postgres = postgresMicros === null ? 'unknown' : postgresMicros.toFixed(1)
  return `${Math.round(perSecond).toLocaleString('en')} deliveries/s, CPU per delivery: node ${nodeMicros.toFixed(1)} µs, PostgreSQL ${postgres} µs`
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
