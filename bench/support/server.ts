import pg from 'pg'
import { resolveDatabase } from '../../src/testing/index.ts'
import { cpuMicrosOfServer, parentOf } from './server-cpu.ts'

/** A database for one benchmark: durable settings, and a meter for the server's CPU. */
export interface BenchDatabase extends AsyncDisposable {
  readonly url: string
  readonly pool: pg.Pool
  readonly version: string
  /** CPU time of all processes of the server so far, ended ones included, in microseconds; null where it cannot be read. */
  cpuMicros(): number | null
}

/** Starts an embedded server with `synchronous_commit` and fsync on, or takes `DATABASE_URL`. */
export async function openBenchDatabase(): Promise<BenchDatabase> {
  const server = await resolveDatabase({
    // So much that the tables of every contender have room: what the disk's cache does is not to be measured.
    embedded: { fsync: true, settings: { max_wal_size: '8GB', shared_buffers: '2GB' } },
  })
  const pool = new pg.Pool({ connectionString: server.url, max: 20 })
  const version = await pool.query<{ v: string; pid: number }>(
    `select current_setting('server_version') as v, pg_backend_pid() as pid`,
  )
  const postmaster = parentOf(version.rows[0]?.pid ?? 0)
  return {
    url: server.url,
    pool,
    version: version.rows[0]?.v ?? 'unknown',
    cpuMicros: () => (postmaster === null ? null : cpuMicrosOfServer(postmaster)),
    [Symbol.asyncDispose]: async () => {
      await pool.end()
      await server.stop()
    },
  }
}

const NEEDED = { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on' } as const
const NOTED = ['shared_buffers', 'max_wal_size', 'autovacuum_naptime'] as const

/**
 * The settings that decide how durable and how fast the server is.
 * @throws Error when a commit would not be durable: no rate is worth anything then.
 */
export async function durableSettings({ pool }: BenchDatabase): Promise<Readonly<Record<string, string>>> {
  const names = [...Object.keys(NEEDED), ...NOTED]
  const { rows } = await pool.query<{ name: string; value: string }>(
    `select name, current_setting(name) as value from unnest($1::text[]) name`,
    [names],
  )
  const settings = Object.fromEntries(rows.map(({ name, value }) => [name, value]))
  for (const [name, value] of Object.entries(NEEDED)) {
    if (settings[name] !== value)
      throw new Error(`The server has ${name} = ${settings[name]}. It must be ${value}.`)
  }
  return settings
}
