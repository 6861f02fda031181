import type { BenchDatabase } from './server.ts'

/** Drops the schemas of all contenders: none of them shall carry the dead rows of another. */
export async function dropSchemas({ pool }: BenchDatabase): Promise<void> {
  for (const schema of ['commitpost_bench', 'graphile_worker', 'pgboss', 'bench_business']) {
    await pool.query(`drop schema if exists ${schema} cascade`)
  }
}

/** Lets everybody start with current statistics and no dirty pages to write. */
export async function settleDown({ pool }: BenchDatabase): Promise<void> {
  await pool.query('vacuum (analyze)')
  await pool.query('checkpoint')
}
