import { migrateUp } from '../../src/store/postgres/index.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { publisherMember, workerMember } from './fleet.ts'
import type { Journal } from './journal.ts'
import type { Victims } from './nemesis.ts'
import type { ChaosOptions } from './run.ts'
import type { ChaosServer } from './server.ts'
import { prepareWatch } from './watch.ts'

/** Where the outbox of a run is. */
export const SCHEMA = 'chaos'
export const WORKERS = 4
export const PUBLISHERS = 3

/** Small enough to be filled in a moment, with room for what the run writes. */
export function diskMegabytes(durationMs: number): number {
  return 256 + Math.ceil(durationMs / 60_000) * 40
}

/** Makes the tables of a run. */
export async function migrate(server: ChaosServer): Promise<void> {
  const pool = sturdyPool({ connectionString: server.url })
  await migrateUp(pool, { schema: SCHEMA })
  await prepareWatch(pool)
  await pool.end()
}

/** The processes of a run. None of them runs yet. */
export async function victimsOf(
  options: ChaosOptions,
  journal: Journal,
  server: ChaosServer,
): Promise<Victims> {
  const { programs, journals, leaseMs, seed, faketime, quietMs } = options
  const databaseUrl = server.url
  const parts = {
    programs,
    databaseUrl,
    schema: SCHEMA,
    journals,
    journal,
    leaseMs,
    seed,
    faketime,
    patienceMs: quietMs,
  }
  const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n)
  return {
    server,
    schema: SCHEMA,
    workers: await Promise.all(numbers(WORKERS).map((n) => workerMember(`w${n}`, parts))),
    publishers: await Promise.all(numbers(PUBLISHERS).map((n) => publisherMember(`p${n}`, parts))),
  }
}
