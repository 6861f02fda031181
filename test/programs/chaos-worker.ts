import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Clock,
  createOutbox,
  fixed,
  type OutboxEvent,
  runUntilSignal,
  type Subscription,
  type SubscriptionContext,
  systemClock,
  type WorkerEvent,
} from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import type { Transaction } from '../../src/store/transaction.ts'
import { catalogue, identityOf, ORIGIN, oldCatalogue } from '../chaos/catalogue.ts'
import { sharedMs } from '../chaos/clock.ts'
import type { ChaosWorkerConfig } from '../chaos/config.ts'
import { openJournal } from '../chaos/journal.ts'
import { isLate } from '../chaos/late.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'

// A worker of a chaos run: node chaos-worker.js <ChaosWorkerConfig as JSON>
const config = JSON.parse(process.argv[2] ?? '{}') as ChaosWorkerConfig
const { id: worker, leaseMs, schema } = config

const journal = openJournal(config.journals, worker)
const pool = sturdyPool({
  connectionString: config.url,
  application_name: worker,
  query_timeout: leaseMs,
  connectionTimeoutMillis: leaseMs,
})
const stopped = new AbortController()
let count = 0
let isStopping = false
let isActive = false

process.stdin.on('end', () => process.exit(70)).resume() // whoever started this is gone

type Context = Pick<SubscriptionContext<typeof catalogue, Transaction>, 'subscription' | 'attempt'>

/** Writes down what it sees before anything else, and that its effect has happened as its last act. */
async function handle(event: OutboxEvent, { subscription, attempt }: Context): Promise<void> {
  const { eventId, type, orderingKey, payload, headers, sequence } = event
  count += 1
  const run = `${worker}/${count}`
  const identity = identityOf(eventId, type, orderingKey, payload, headers[ORIGIN])
  journal.write({ kind: 'seen', run, worker, subscription, attempt, sequence, ...identity })
  const share = Number.parseInt(eventId.slice(-4), 16) / 0x1_00_00
  await sleep(timeOf(subscription, share))
  const failed = share < 0.04 && attempt === 1
  journal.write({ kind: 'finished', run, outcome: failed ? 'failed' : 'done' })
  if (failed) throw new Error('The first attempt at this one fails')
}

/** Most are quick; a few outlive the time in which a lease has to be extended. */
function timeOf(subscription: string, share: number): number {
  if (subscription === 'solo') return 1
  return share > 0.9995 ? leaseMs * 0.6 : share * 20
}

type ChaosSubscription = Subscription<typeof catalogue, Transaction>

const isOld = config.code === 'old'
const common = { retry: fixed(100), maxAttempts: 100, pollMs: 200, concurrency: isOld ? 4 : 8 }
const all: readonly ChaosSubscription[] = [
  { name: 'ordered', options: { ...common, order: 'aggregate', lanes: 8, on: { '*': handle } } },
  { name: 'unordered', options: { ...common, on: { '*': handle } } },
  { name: 'solo', options: { ...common, concurrency: 1, oneAtATime: true, on: { Rested: handle } } },
  {
    name: 'deployed',
    options: { ...common, on: { Stepped: handle, Waved: handle, ...(isOld ? {} : { Turned: handle }) } },
  },
]

function observe(event: WorkerEvent): void {
  if (event.kind !== 'dead') return
  const { subscription, event: dead } = event
  journal.write({ kind: 'setAside', subscription, eventId: dead.eventId })
}

/**
 * What it was told by the library, and not what stands in its tables, is what its subscriptions owe from now on: a type
 * that a deploy failed to add is missed.
 */
async function noteActive(): Promise<void> {
  await chaosWorker.active()
  for (const { name, options } of all) {
    const types = Object.keys(options.on ?? {})
    journal.write({
      kind: 'subscribed',
      subscription: name,
      order: options.order === undefined && options.oneAtATime === undefined ? 'none' : 'key',
      oneAtATime: options.oneAtATime === true,
      types: types.includes('*') ? null : types,
    })
  }
  isActive = true
}

const TICK_MS = 100

/** What the machine itself does to a process costs leases as well. Without this, it would be blamed on nobody. */
async function watchForStalls(): Promise<void> {
  for (let n = 1; !stopped.signal.aborted; n += 1) {
    const at = sharedMs()
    await systemClock.sleep(TICK_MS, stopped.signal)
    const until = sharedMs()
    if (isLate(until - at - TICK_MS, leaseMs)) {
      journal.writeAt({
        kind: 'fault',
        at,
        until,
        id: `stall-${worker}-${n}`,
        name: 'stall',
        workers: [worker],
      })
    }
    process.stdout.write(`${JSON.stringify({ count, isActive })}\n`)
  }
}

const clock: Clock = { ...systemClock, now: () => new Date(systemClock.now().getTime() + config.skewMs) }
const outbox = createOutbox({
  store: postgresStore({ pool, schema, clock }),
  events: (isOld ? oldCatalogue : catalogue) as typeof catalogue,
  clock,
})
const chaosWorker = outbox.worker(isOld ? all : all.toReversed(), {
  workerId: worker,
  leaseMs,
  housekeepingMs: 300,
  observers: [observe],
})

/** A database that is away right now is no reason to give up: whoever runs workers starts them again. */
async function startedAtLast(): Promise<void> {
  while (!isStopping) {
    try {
      return await chaosWorker.start()
    } catch (error) {
      process.stderr.write(`${worker} could not start yet: ${String(error)}\n`)
      await sleep(200)
    }
  }
}

const watching = watchForStalls()
const stop = (): Promise<void> => {
  isStopping = true
  return chaosWorker.stop()
}
/** Whoever stops it before that hears nothing of it. */
const start = async (): Promise<void> => {
  await startedAtLast()
  noteActive().catch(() => undefined)
}
await runUntilSignal({ start, stop })
stopped.abort()
await watching
process.stdin.unref()
await pool.end()
journal.close()
