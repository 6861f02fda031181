import pg from 'pg'
import { graphileOptions, importGraphile, TASK } from '../support/graphile-worker.ts'
import { runLatency } from '../support/latency-program.ts'
import type { BenchPayload } from '../support/payload.ts'

const ADD_JOB = 'select graphile_worker.add_job($1, $2::json)'

await runLatency({
  work: async ({ url, settings }, onPayload) => {
    const peer = await importGraphile()
    const runner = await peer.run(
      graphileOptions(peer, url, settings, (payload) => onPayload(payload as BenchPayload)),
    )
    return () => runner.stop()
  },
  connect: async ({ url, settings }) => {
    const pool = new pg.Pool({ connectionString: url, max: 10 })
    const inTransaction = settings['transaction'] === true
    return {
      send: async (payload) => {
        const client = await pool.connect()
        if (inTransaction) await client.query('begin')
        await client.query(ADD_JOB, [TASK, JSON.stringify(payload)])
        if (inTransaction) await client.query('commit')
        client.release()
      },
      close: () => pool.end(),
    }
  },
})
