import { assertCount, countOf, runContender } from '../support/drain-program.ts'
import { graphileOptions, importGraphile, TASK } from '../support/graphile-worker.ts'
import { PAYLOAD_SQL } from '../support/payload.ts'

const SLICE = 20_000

await runContender({
  load: async (pool, { url, events, settings }) => {
    const peer = await importGraphile()
    await pool.query('drop schema if exists graphile_worker cascade')
    await peer.runMigrations(graphileOptions(peer, url, settings))
    for (let first = 1; first <= events; first += SLICE) {
      await pool.query(
        `select count(*) from graphile_worker.add_jobs(array(
           select ($3, ${PAYLOAD_SQL}::json, null, null, null, null, null, null)::graphile_worker.job_spec
             from generate_series($1::int, $2::int) i))`,
        [first, Math.min(events, first + SLICE - 1), TASK],
      )
    }
  },
  open: async ({ url, settings }) => {
    const peer = await importGraphile()
    let stop: () => Promise<void> = async () => undefined
    return {
      start: async (onHandled) => {
        const runner = await peer.run(graphileOptions(peer, url, settings, () => onHandled()))
        stop = () => runner.stop()
      },
      stop: () => stop(),
    }
  },
  verify: async (pool) => {
    // A job that is done is deleted.
    assertCount('jobs left', await countOf(pool, 'select count(*) from graphile_worker._private_jobs'), 0)
  },
})
