import { createOutbox } from '../../outbox.ts'
import { linkSignals } from '../../runtime/abort.ts'
import type { Clock } from '../../runtime/clock.ts'
import { runPeriodically } from '../../runtime/periodic.ts'
import { property } from '../../runtime/property.ts'
import type { Random } from '../../runtime/random.ts'
import type { SubscriptionStatus } from '../../store/inspect-store.ts'
import type { Worker } from '../../worker/worker.ts'
import { shopEvents } from './catalogue.ts'
import type { DemoDatabase } from './demo-database.ts'
import { Journal, type Latency } from './journal.ts'
import { type DemoResult, judge, type LedgerAudit } from './result.ts'
import { sellSteadily } from './sell-steadily.ts'
import { Shop } from './shop.ts'
import { readShopStatements, type ShopStatements } from './statements.ts'
import { shopSubscriptions } from './subscriptions.ts'

/** One second of the demo. */
export interface DemoProgress {
  readonly published: number
  readonly delivered: number
  readonly pending: number
  readonly retrying: number
  readonly dead: number
  readonly latencyMs: Latency
}

/** What a run of the demo is made of. */
export interface DemoRun {
  readonly database: DemoDatabase
  /** Business transactions per second. */
  readonly rate: number
  /** How long to sell; null until the signal aborts. */
  readonly forMs: number | null
  readonly clock: Clock
  readonly random: Random
  /** Ends the selling; what was published is delivered all the same. */
  readonly signal: AbortSignal
  onProgress(progress: DemoProgress): void
  onDraining(): void
}

interface DemoShop {
  readonly shop: Shop
  readonly worker: Worker
  readonly journal: Journal
  readonly statements: ShopStatements
}

const SUBSCRIPTIONS = 3
const PROGRESS_EVERY_MS = 1_000
const DRAIN_LOOKS_EVERY_MS = 50
const LONGEST_DRAIN_MS = 60_000

/** Sells until it is over, lets everything be delivered, and says whether every event is accounted for. */
export async function runDemo(run: DemoRun): Promise<DemoResult> {
  const demo = await openShop(run)
  const isOver = new AbortController()
  try {
    await demo.worker.start()
    await demo.worker.active()
    const reports = reportProgress(run, demo.journal, isOver.signal)
    try {
      await sell(run, demo.shop)
      run.onDraining()
      await drain(run)
    } finally {
      isOver.abort()
      await reports
    }
  } finally {
    await demo.worker.stop()
  }
  return judge({
    counts: demo.journal.counts,
    latency: demo.journal.latency(),
    events: await run.database.store.countEvents(),
    statuses: await run.database.store.subscriptionStatuses(),
    ledger: await auditLedger(run.database, demo.statements),
  })
}

async function openShop({ database, clock, random }: DemoRun): Promise<DemoShop> {
  const { pool, store } = database
  const statements = await readShopStatements(database.quotedSchema)
  await withClient(database, (query) => query(statements.createTables))
  const journal = new Journal(clock, SUBSCRIPTIONS)
  const outbox = createOutbox({ store, events: shopEvents(), clock, random })
  const shop = new Shop({ pool, outbox, statements, journal })
  const worker = outbox.worker(shopSubscriptions({ outbox, pool, statements, journal, clock }))
  return { shop, worker, journal, statements }
}

async function sell({ rate, forMs, clock, signal }: DemoRun, shop: Shop): Promise<void> {
  const closing = linkSignals(signal)
  const closingTime = forMs === null ? Promise.resolve() : clock.sleep(forMs, closing.signal)
  if (forMs !== null) void closingTime.then(() => closing.abort())
  try {
    await sellSteadily({ rate, clock, signal: closing.signal, sell: () => shop.serveNext() })
  } finally {
    closing.abort()
    closing.unlink()
  }
}

/** Waits until nothing is pending, but not for what somebody has paused, and not for ever. */
async function drain({ database, clock }: DemoRun): Promise<void> {
  const deadlineMs = clock.monotonicMs() + LONGEST_DRAIN_MS
  while (clock.monotonicMs() < deadlineMs) {
    const statuses = await database.store.subscriptionStatuses()
    const isDone = ({ paused, counts }: SubscriptionStatus): boolean =>
      counts.PROCESSING === 0 && (paused || counts.PENDING === 0)
    if (statuses.every(isDone)) return
    await clock.sleep(DRAIN_LOOKS_EVERY_MS)
  }
}

function reportProgress(run: DemoRun, journal: Journal, signal: AbortSignal): Promise<void> {
  return runPeriodically({
    everyMs: PROGRESS_EVERY_MS,
    jitter: 0,
    clock: run.clock,
    random: run.random,
    signal,
    run: async () => {
      const statuses = await run.database.store.subscriptionStatuses()
      if (!signal.aborted) run.onProgress(progressOf(statuses, journal))
    },
    // Whatever keeps the database from answering is met and reported by the sales and the drain.
    onError: () => undefined,
  })
}

function progressOf(statuses: readonly SubscriptionStatus[], journal: Journal): DemoProgress {
  const sum = (pick: (status: SubscriptionStatus) => number): number =>
    statuses.reduce((total, status) => total + pick(status), 0)
  return {
    published: journal.counts.published,
    delivered: sum(({ counts }) => counts.DONE),
    pending: sum(({ counts }) => counts.PENDING + counts.PROCESSING),
    retrying: sum(({ retrying }) => retrying),
    dead: sum(({ counts }) => counts.DEAD),
    latencyMs: journal.recentLatency(),
  }
}

async function auditLedger(
  database: DemoDatabase,
  { auditLedger: statement }: ShopStatements,
): Promise<LedgerAudit> {
  const { rows } = await withClient(database, (query) => query(statement))
  const count = (name: keyof LedgerAudit): number => Number(property(rows[0], name))
  return { entries: count('entries'), orders: count('orders'), violations: count('violations') }
}

async function withClient<Result>(
  { pool }: DemoDatabase,
  work: (query: (text: string) => Promise<{ readonly rows: readonly unknown[] }>) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  try {
    return await work((text) => client.query(text))
  } finally {
    client.release()
  }
}
