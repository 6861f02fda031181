import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Clock, createOutbox, runUntilSignal, systemClock, type WorkerEvent } from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { recordHandled } from '../support/history.ts'
import { oldSteps, type Step, steps } from '../support/steps.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import type { HandlerConfig, WorkerConfig, WorkerLine } from '../support/worker-config.ts'

// A worker to be killed, paused and cut off: node fault-worker.js <WorkerConfig as JSON>
const config = JSON.parse(process.argv[2] ?? '{}') as WorkerConfig
const { workerId, schema, handlers: behaviour = {} } = config

const pool = sturdyPool({ connectionString: config.url, ...config.connections })
const witness = sturdyPool({ connectionString: config.witnessUrl })

function tell(line: WorkerLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

const released = new Promise<void>((resolve) => {
  process.stdin.once('data', () => resolve())
})
process.stdin.on('end', () => process.exit(70)) // whoever started this is gone

async function handle(event: {
  readonly eventId: string
  readonly aggregateId: string
  readonly payload: Step
}): Promise<void> {
  const { eventId, aggregateId, payload } = event
  tell({ kind: 'begun', eventId })
  if (payload.poison === true && behaviour.obeysPoison === true) process.kill(process.pid, 'SIGKILL')
  await behave(behaviour)
  await recordHandled(witness, schema, { eventId, key: aggregateId, seq: payload.seq, worker: workerId })
}

async function behave({ hold, needsDatabase, takesMs, blocksUntil }: HandlerConfig): Promise<void> {
  if (hold === true) await released
  if (blocksUntil !== undefined) while (!existsSync(blocksUntil));
  if (takesMs !== undefined) await sleep(takesMs)
  if (needsDatabase === true) await pool.query('select 1')
}

function observe(event: WorkerEvent): void {
  const eventId = 'event' in event ? event.event.eventId : undefined
  const { kind, ...rest } = event
  const facts = Object.fromEntries(Object.entries(rest).filter(([, fact]) => typeof fact !== 'object'))
  const message = event.kind === 'error' ? { message: String(event.error) } : {}
  tell({ kind, ...facts, ...message, ...(eventId === undefined ? {} : { eventId }) })
}

// Checks of the listening connection wake workers too. Hours apart, they cannot be what delivered an event.
const unhurried: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms * 1_000, signal) }
const store = postgresStore({ pool, schema, clock: unhurried })
const options = {
  workerId,
  leaseMs: config.leaseMs,
  drainMs: config.drainMs ?? 30_000,
  listen: config.listen ?? false,
  housekeepingMs: 200,
  observers: [observe],
}
const { name, ...subscription } = config.subscription
const worker =
  config.code === 'old'
    ? createOutbox({ store, events: oldSteps }).worker(
        [{ name, options: { ...subscription, on: { StepTaken: handle } } }],
        options,
      )
    : createOutbox({ store, events: steps }).worker(
        [{ name, options: { ...subscription, on: { StepTaken: handle, StepRetraced: handle } } }],
        options,
      )

await runUntilSignal(worker)
// Nothing is ended by force: whatever the worker left open would keep this process alive, and a test would see it.
process.stdin.unref()
await Promise.all([pool.end(), witness.end()])
