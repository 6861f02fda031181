import { dropSchemas, settleDown } from '../support/clean-up.ts'
import { prepareSchema, SCHEMA } from '../support/commitpost.ts'
import type { LiveReport, LiveTask } from '../support/protocol.ts'
import { bar } from '../support/results.ts'
import type { Scenario, Session } from '../support/scenario.ts'
import { startProgram } from '../support/start-program.ts'
import { turned } from '../support/turned.ts'

interface LiveContender {
  readonly name: string
  readonly order: LiveTask['order']
  /** Whether a transaction with a snapshot from before the run stays open: nothing can be vacuumed. */
  readonly oldSnapshot: boolean
}

const CONTENDERS: readonly LiveContender[] = [
  { name: 'commitpost unordered', order: 'none', oldSnapshot: false },
  { name: 'commitpost unordered, old snapshot', order: 'none', oldSnapshot: true },
  { name: 'commitpost ordered', order: 'aggregate', oldSnapshot: false },
  { name: 'commitpost ordered, old snapshot', order: 'aggregate', oldSnapshot: true },
]

/** The publisher's side, and how much goes before and into the measured tenths: all of it in multiples of `drain`'s backlog. */
const LOAD = { batch: 200, clients: 4, mostOpen: 10_000, keys: 100_000 } as const
const SHARES = { measured: 5, warmUp: 1 / 4 } as const

/** A publisher and a worker at the same time: does it slow down as the tables grow and dead rows pile up? */
export const liveScenario: Scenario = {
  name: 'live',
  contenders: CONTENDERS.map(({ name }) => name),
  method: { contenders: CONTENDERS, ...LOAD, shares: SHARES },
  run: async (session) => {
    for (const contender of turned(CONTENDERS, session.round)) {
      if (session.includes(contender.name)) await measureLive(session, contender)
    }
  },
  bars: (results) =>
    CONTENDERS.flatMap(({ name }) =>
      bar(
        `live for 1M events, last tenth against the first: ${name}`,
        results.median('live', name, 'lastToFirst'),
        'at least',
        0.8,
      ),
    ),
}

async function measureLive(session: Session, { name, order, oldSnapshot }: LiveContender): Promise<void> {
  const { database } = session
  // In whole tenths.
  const events = Math.ceil((session.events * SHARES.measured) / 10) * 10
  const task = {
    ...LOAD,
    url: database.url,
    events,
    warmUp: Math.ceil(session.events * SHARES.warmUp),
    order,
  }
  session.progress(`live: ${name}`)
  await dropSchemas(database)
  await prepareSchema(database.pool, { count: 1, order, batchSize: 1_000, concurrency: 100 })
  await settleDown(database)
  const holder = await database.pool.connect()
  if (oldSnapshot) {
    await holder.query('begin isolation level repeatable read')
    await holder.query(`select count(*) from ${SCHEMA}.outbox_event`)
  }
  try {
    const report = await runBoth(task)
    await verify(session, task)
    session.results.add({
      scenario: 'live',
      contender: name,
      round: session.round,
      figures: figuresOf(report, events),
    })
  } finally {
    if (oldSnapshot) await holder.query('rollback')
    holder.release()
  }
}

async function runBoth(task: Omit<LiveTask, 'role'>): Promise<LiveReport> {
  const worker = startProgram<LiveReport>('live', { ...task, role: 'worker' })
  const publisher = startProgram<null>('live', { ...task, role: 'publisher' })
  worker.onProgress((value) => publisher.tell({ type: 'credit', value }))
  await Promise.all([worker.ready, publisher.ready])
  worker.tell({ type: 'go' })
  publisher.tell({ type: 'go' })
  const [report] = await Promise.all([worker.report, publisher.report])
  return report
}

async function verify({ database }: Session, { events, warmUp }: Omit<LiveTask, 'role'>): Promise<void> {
  const { rows } = await database.pool.query<{ done: number }>(
    `select count(*)::int as done from ${SCHEMA}.outbox_delivery where status = 'DONE'`,
  )
  if (rows[0]?.done !== events + warmUp) {
    throw new Error(`${rows[0]?.done} of ${events + warmUp} deliveries are DONE: the figure means nothing`)
  }
}

function figuresOf({ tenths, cpuMicros, maxRssBytes }: LiveReport, events: number): Record<string, number> {
  const [first = Number.NaN] = tenths
  const last = tenths.at(-1) ?? Number.NaN
  return {
    lastToFirst: first / last,
    firstTenthPerSecond: events / 10 / first,
    lastTenthPerSecond: events / 10 / last,
    perSecond: events / tenths.reduce((sum, seconds) => sum + seconds, 0),
    nodeMicros: cpuMicros / events,
    maxRssMegabytes: maxRssBytes / 1_048_576,
  }
}
