import { assertCount, type Contender, countOf, runContender } from '../support/drain-program.ts'
import { payloadOf } from '../support/payload.ts'
import { importPeer } from '../support/peers.ts'
import type { DrainTask } from '../support/protocol.ts'

/** The part of pg-boss's interface that is used. */
interface Boss {
  start(): Promise<unknown>
  stop(options: { graceful: boolean }): Promise<void>
  on(event: 'error', listener: (error: Error) => void): unknown
  createQueue(name: string): Promise<void>
  insert(name: string, jobs: readonly { data: object }[]): Promise<unknown>
  fetch(name: string, options: { batchSize: number }): Promise<readonly { id: string }[]>
  complete(name: string, ids: readonly string[]): Promise<unknown>
  work(
    name: string,
    options: {
      batchSize: number
      localConcurrency: number
      burstWhenBatchFull: boolean
      pollingIntervalSeconds: number
    },
    handler: (jobs: readonly unknown[]) => Promise<void>,
  ): Promise<string>
  offWork(name: string, options: { wait: boolean }): Promise<void>
}

const QUEUE = 'bench_order'
const SLICE = 5_000
const BATCH = 1_000
const FETCHERS = 2
// The least it allows.
const POLLING_SECONDS = 0.5

await runContender({
  load: async (pool, { url, events }) => {
    await pool.query('drop schema if exists pgboss cascade')
    const boss = await startBoss(url)
    await boss.createQueue(QUEUE)
    for (let first = 1; first <= events; first += SLICE) {
      const length = Math.min(SLICE, events - first + 1)
      await boss.insert(
        QUEUE,
        Array.from({ length }, (_, index) => ({ data: payloadOf(first + index) })),
      )
    }
    await boss.stop({ graceful: true })
  },
  open: async (task) => (task.settings['mode'] === 'work' ? await openWork(task) : await openFetch(task)),
  verify: async (pool, { events }) => {
    const done = await countOf(
      pool,
      `select count(*) from pgboss.job where name = '${QUEUE}' and state = 'completed'`,
    )
    assertCount('completed jobs', done, events)
  },
})

async function startBoss(url: string): Promise<Boss> {
  const { PgBoss } = await importPeer<{ PgBoss: new (options: object) => Boss }>('pg-boss')
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false, max: 10 })
  boss.on('error', (error) => {
    throw error
  })
  await boss.start()
  return boss
}

/** fetch and complete in a loop, the way with the least between the program and the statements. */
async function openFetch({ url }: DrainTask): Promise<Contender> {
  const boss = await startBoss(url)
  let stopping = false
  let loops: readonly Promise<void>[] = []
  const loop = async (onHandled: () => void): Promise<void> => {
    while (!stopping) {
      const jobs = await boss.fetch(QUEUE, { batchSize: BATCH })
      if (jobs.length === 0) return
      for (let index = 0; index < jobs.length; index += 1) onHandled()
      await boss.complete(
        QUEUE,
        jobs.map((job) => job.id),
      )
    }
  }
  return {
    start: async (onHandled) => {
      loops = Array.from({ length: FETCHERS }, () => loop(onHandled))
    },
    stop: async () => {
      stopping = true
      await Promise.all(loops)
    },
    close: () => boss.stop({ graceful: true }),
  }
}

async function openWork({ url }: DrainTask): Promise<Contender> {
  const boss = await startBoss(url)
  return {
    start: async (onHandled) => {
      const options = {
        batchSize: BATCH,
        localConcurrency: FETCHERS,
        burstWhenBatchFull: true,
        pollingIntervalSeconds: POLLING_SECONDS,
      }
      await boss.work(QUEUE, options, async (jobs) => {
        for (let index = 0; index < jobs.length; index += 1) onHandled()
      })
    },
    stop: () => boss.offWork(QUEUE, { wait: true }),
    close: () => boss.stop({ graceful: true }),
  }
}
