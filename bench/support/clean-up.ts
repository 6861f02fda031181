import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { BenchDatabase } from './server.ts'

const run = promisify(execFile)

/** Drops the schemas of all contenders: none of them shall carry the dead rows of another. */
export async function dropSchemas({ pool }: BenchDatabase): Promise<void> {
  for (const schema of ['commitpost_bench', 'graphile_worker', 'pgboss', 'bench_business']) {
    await pool.query(`drop schema if exists ${schema} cascade`)
  }
}

/**
 * Lets everybody start with current statistics and no dirty pages to write: neither the server's, nor those of the files
 * that were dropped, which the system would write and give back while the next one waits for the disk.
 */
export async function settleDown({ pool }: BenchDatabase): Promise<void> {
  await pool.query('vacuum (analyze)')
  await pool.query('checkpoint')
  // Where there is no such command there is nothing to be done.
  await run('sync').catch(() => undefined)
}
