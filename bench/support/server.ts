import { readdirSync, readFileSync } from 'node:fs'
import pg from 'pg'
import { migrateUp } from '../../src/store/postgres/index.ts'
import { resolveDatabase } from '../../src/testing/index.ts'

/** A database for one benchmark: durable settings, a schema of its own, and a meter for the server's CPU. */
export interface BenchDatabase extends AsyncDisposable {
  readonly pool: pg.Pool
  readonly schema: string
  readonly version: string
  /** CPU time of all processes of the server so far, in microseconds; null where it cannot be read. */
  cpuMicros(): number | null
  /** An empty, migrated schema. */
  reset(): Promise<void>
}

const SCHEMA = 'commitpost_bench'
const TICKS_PER_SECOND = 100

/** Starts an embedded server with `synchronous_commit` and fsync on, or takes `DATABASE_URL`. */
export async function openBenchDatabase(): Promise<BenchDatabase> {
  const server = await resolveDatabase({
    embedded: { fsync: true, settings: { max_wal_size: '8GB', shared_buffers: '256MB' } },
  })
  const pool = new pg.Pool({ connectionString: server.url, max: 20 })
  const version = await pool.query<{ v: string; pid: number }>(
    `select current_setting('server_version') as v, pg_backend_pid() as pid`,
  )
  const postmaster = parentOf(version.rows[0]?.pid ?? 0)
  const reset = async (): Promise<void> => {
    await pool.query(`drop schema if exists ${SCHEMA} cascade`)
    await migrateUp(pool, { schema: SCHEMA })
  }
  return {
    pool,
    schema: SCHEMA,
    version: version.rows[0]?.v ?? 'unknown',
    cpuMicros: () => (postmaster === null ? null : cpuOfChildren(postmaster)),
    reset,
    [Symbol.asyncDispose]: async () => {
      await pool.end()
      await server.stop()
    },
  }
}

interface ProcessStat {
  readonly parent: number
  readonly ticks: number
}

function statOf(pid: number | string): ProcessStat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) }
  } catch {
    return null
  }
}

function parentOf(pid: number): number | null {
  return statOf(pid)?.parent ?? null
}

function cpuOfChildren(postmaster: number): number {
  let ticks = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const stat = statOf(name)
    if (stat !== null && stat.parent === postmaster) ticks += stat.ticks
  }
  return (ticks * 1_000_000) / TICKS_PER_SECOND
}
