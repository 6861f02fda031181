// A worker with nothing to do, and how many queries it sends.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { benchOutbox, benchSubscriptions } from '../support/commitpost.ts'
import { runProgram } from '../support/program.ts'
import type { IdleReport, IdleTask } from '../support/protocol.ts'

await runProgram<IdleTask>(async ({ url, order, settleSeconds, seconds }, talk): Promise<IdleReport> => {
  let queries = 0
  // Counted where every query of every pool goes through, so that none is overlooked.
  const query = Reflect.get(pg.Client.prototype, 'query') as (...args: unknown[]) => unknown
  Reflect.set(pg.Client.prototype, 'query', function counted(this: pg.Client, ...args: unknown[]) {
    queries += 1
    return Reflect.apply(query, this, args)
  })
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const settings = { count: 1, order, batchSize: 1_000, concurrency: 100 }
  const worker = benchOutbox(pool).worker(benchSubscriptions(settings, () => undefined))
  await talk.ready()
  await worker.start()
  await worker.active()
  await sleep(settleSeconds * 1_000)
  queries = 0
  await sleep(seconds * 1_000)
  const sent = queries
  await worker.stop()
  await pool.end()
  return { queriesPerSecond: sent / seconds }
})
