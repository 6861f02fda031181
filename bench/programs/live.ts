// A publisher and a worker at the same time, in two processes. The publisher waits when the worker falls behind.
import pg from 'pg'
import { benchOutbox, benchSubscriptions } from '../support/commitpost.ts'
import { payloadOf } from '../support/payload.ts'
import { type Conversation, runProgram } from '../support/program.ts'
import type { LiveReport, LiveTask } from '../support/protocol.ts'

const PROGRESS_EVERY_MS = 20

await runProgram<LiveTask>((task, talk) => (task.role === 'worker' ? work(task, talk) : publish(task, talk)))

async function work(task: LiveTask, talk: Conversation): Promise<LiveReport> {
  const pool = new pg.Pool({ connectionString: task.url, max: 10 })
  const counter = countTenths(task)
  const settings = { count: 1, order: task.order, batchSize: 1_000, concurrency: 100 }
  const worker = benchOutbox(pool).worker(benchSubscriptions(settings, () => counter.onEvent()))
  await talk.ready()
  const cpuBefore = process.cpuUsage()
  const reporter = setInterval(() => talk.progress(counter.handled()), PROGRESS_EVERY_MS)
  await worker.start()
  await counter.finished
  await worker.stop()
  clearInterval(reporter)
  const cpu = process.cpuUsage(cpuBefore)
  await pool.end()
  const { reachedAt } = counter
  return {
    tenths: reachedAt.slice(1).map((at, index) => (at - (reachedAt[index] ?? 0)) / 1_000),
    cpuMicros: cpu.user + cpu.system,
    maxRssBytes: process.resourceUsage().maxRSS * 1_024,
  }
}

interface TenthCounter {
  onEvent(): void
  handled(): number
  readonly finished: Promise<void>
  /** When the warm-up was over, and when each tenth was. */
  readonly reachedAt: readonly number[]
}

function countTenths({ warmUp, events }: LiveTask): TenthCounter {
  const reachedAt: number[] = []
  let handled = 0
  let next = warmUp
  let finish: () => void = () => undefined
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  const onEvent = (): void => {
    handled += 1
    if (handled !== next) return
    reachedAt.push(performance.now())
    next += events / 10
    if (handled === warmUp + events) finish()
  }
  return { onEvent, handled: () => handled, finished, reachedAt }
}

async function publish(task: LiveTask, talk: Conversation): Promise<null> {
  const { url, warmUp, events, batch, clients, mostOpen, keys } = task
  const pool = new pg.Pool({ connectionString: url, max: clients + 1 })
  const outbox = benchOutbox(pool)
  const window = openWindow(talk)
  let sent = 0
  const publishBatches = async (): Promise<void> => {
    while (sent < warmUp + events) {
      const first = sent
      sent = Math.min(warmUp + events, first + batch)
      const inputs = Array.from({ length: sent - first }, (_, index) => ({
        type: 'OrderPlaced' as const,
        aggregateId: (first + index) % keys,
        payload: payloadOf(first + index),
      }))
      await window.until(sent - mostOpen)
      await outbox.inTransaction(pool, (tx) => outbox.publishAll(tx, inputs))
    }
  }
  await talk.ready()
  await Promise.all(Array.from({ length: clients }, () => publishBatches()))
  await pool.end()
  return null
}

/** Lets publishers wait until the worker has handled so many. */
function openWindow(talk: Conversation): { until(handled: number): Promise<void> } {
  let credit = 0
  let waiting: { readonly handled: number; readonly go: () => void }[] = []
  talk.onCredit((value) => {
    credit = value
    const served = waiting.filter(({ handled }) => handled <= credit)
    waiting = waiting.filter(({ handled }) => handled > credit)
    for (const { go } of served) go()
  })
  return {
    until: async (handled) => {
      if (handled <= credit) return
      await new Promise<void>((go) => waiting.push({ handled, go }))
    },
  }
}
