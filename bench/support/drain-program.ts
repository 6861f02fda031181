// The frame around every contender: the same start, the same counting, the same end.
import pg from 'pg'
import { type Conversation, runProgram } from './program.ts'
import type { DrainReport, DrainTask } from './protocol.ts'

/** A worker of a contender, connected and about to start. */
export interface Contender {
  /** Starts the work; `onHandled` is the handler: it does nothing but count. */
  start(onHandled: () => void): Promise<void>
  /** Ends when everything that was handled is written down. */
  stop(): Promise<void>
  /** Gives back connections; not timed. */
  close?(): Promise<void>
}

/** What a contender's program can do. */
export interface ContenderProgram {
  /** An empty schema with the backlog in it. */
  load(pool: pg.Pool, task: DrainTask): Promise<void>
  /** A worker that is not yet working. */
  open(task: DrainTask): Promise<Contender>
  /** Throws when a job of the backlog is not done. */
  verify(pool: pg.Pool, task: DrainTask): Promise<void>
}

/** Runs the step that the task names. */
export async function runContender(contender: ContenderProgram): Promise<void> {
  await runProgram<DrainTask>(async (task, talk) => {
    if (task.step === 'drain') return await drain(await contender.open(task), task, talk)
    const pool = new pg.Pool({ connectionString: task.url, max: 4 })
    await contender[task.step](pool, task)
    await pool.end()
    return null
  })
}

const PROGRESS_EVERY_MS = 20

async function drain(worker: Contender, task: DrainTask, talk: Conversation): Promise<DrainReport> {
  const expected = task.processes === 1 ? task.events * task.subscriptions : Number.POSITIVE_INFINITY
  let handled = 0
  let reachEnd: () => void = () => undefined
  const all = new Promise<void>((resolve) => {
    reachEnd = resolve
  })
  const onHandled = (): void => {
    handled += 1
    if (handled === expected) reachEnd()
  }
  await talk.ready()
  const reporter =
    task.processes === 1 ? undefined : setInterval(() => talk.progress(handled), PROGRESS_EVERY_MS)
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  await worker.start(onHandled)
  await Promise.race([all, talk.stopped])
  const handledSeconds = (performance.now() - startedAt) / 1_000
  await worker.stop()
  const seconds = (performance.now() - startedAt) / 1_000
  const cpu = process.cpuUsage(cpuBefore)
  clearInterval(reporter)
  await worker.close?.()
  return {
    handled,
    handledSeconds,
    seconds,
    cpuMicros: cpu.user + cpu.system,
    maxRssBytes: process.resourceUsage().maxRSS * 1_024,
  }
}

/** Throws unless the count is the expected one. */
export function assertCount(what: string, found: number, expected: number): void {
  if (found !== expected)
    throw new Error(`${what}: ${found} instead of ${expected}: the figure means nothing`)
}

/** The number in the first column of the first row. */
export async function countOf(pool: pg.Pool, sql: string): Promise<number> {
  const { rows } = await pool.query<{ count: string }>(sql)
  return Number(rows[0]?.count)
}
