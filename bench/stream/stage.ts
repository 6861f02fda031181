// What every contender of `stream` is measured on: an empty schema, a load, a clock.
import { setTimeout as sleep } from 'node:timers/promises'
import { migrateUp } from '../../src/store/postgres/index.ts'
import type { ConnectServer } from '../../test/support/kafka/connect.ts'
import { loadBacklog, SCHEMA } from '../support/commitpost.ts'
import type { Results } from '../support/results.ts'
import type { BenchDatabase } from '../support/server.ts'
import type { Topics } from './topics.ts'

/** One run of everything. */
export interface Stage {
  readonly database: BenchDatabase
  /** Null where there is no Java to run them. */
  readonly servers: { readonly topics: Topics; readonly connect: ConnectServer } | null
  readonly events: number
  readonly keys: number
  readonly round: number
  readonly results: Results
  progress(text: string): void
}

/** How latencies are measured: so many events a second, after as long as it takes everybody to be warm. */
export const PACED = { perSecond: 200, seconds: 15, warmUpSeconds: 5 } as const

/** How many events are measured, and how many go before them. */
export function pacedCounts({ events }: Pick<Stage, 'events'>): {
  readonly warmUp: number
  readonly count: number
} {
  const count = Math.round(Math.min(1, events / 200_000) * PACED.seconds * PACED.perSecond)
  return { warmUp: PACED.warmUpSeconds * PACED.perSecond, count }
}

/** An empty schema, and no slot of an earlier contender. */
export async function clear({ database: { pool } }: Pick<Stage, 'database'>): Promise<void> {
  for (;;) {
    const { rows } = await pool.query<{ active: boolean }>('select active from pg_replication_slots')
    if (rows.every(({ active }) => !active)) break
    await sleep(50)
  }
  await pool.query('select pg_drop_replication_slot(slot_name) from pg_replication_slots')
  await pool.query(`drop schema if exists ${SCHEMA} cascade`)
  await migrateUp(pool, { schema: SCHEMA })
}

/** CPU time that a contender took, for each event, in microseconds. */
export interface Cpu {
  readonly nodeMicros: number
  readonly postgresMicros: number
}

/**
 * Publishes all events with one statement and hands over what the way to the end cost. Nobody sees any of them before the
 * commit, so that publishing is no part of it.
 */
export async function loadAndWait(
  { database, events, keys }: Stage,
  arrived: () => Promise<void>,
): Promise<Cpu> {
  await loadBacklog(database.pool, events, keys)
  const before = process.cpuUsage()
  const postgresBefore = database.cpuMicros() ?? 0
  await arrived()
  const { user, system } = process.cpuUsage(before)
  const postgres = (database.cpuMicros() ?? 0) - postgresBefore
  return { nodeMicros: (user + system) / events, postgresMicros: postgres / events }
}

/** Waits until something holds. */
export async function until(condition: () => boolean | Promise<boolean>, everyMs = 20): Promise<void> {
  while (!(await condition())) await sleep(everyMs)
}
