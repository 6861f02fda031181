import pg from 'pg'
import { expect, test } from 'vitest'
import { startEmbeddedPostgres } from '../../src/testing/index.ts'
import { createFaultDatabase } from '../support/fault-database.ts'
import { bePatient } from '../support/patience.ts'
import { postgresAvailable } from '../support/servers.ts'
import { publishSteps, stepOutbox, walks } from '../support/steps.ts'

bePatient()

const COMMITS = 50

async function count(pool: pg.Pool, table: string): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(`select count(*)::int as count from ${table}`)
  return rows[0]?.count ?? 0
}

test.skipIf(!postgresAvailable())(
  'E1 events whose commit was acknowledged survive a crash, even with synchronous_commit off',
  async () => {
    // As far apart as the server allows: what was not forced to disk by a commit is not there for a while.
    const settings = { synchronous_commit: 'off', wal_writer_delay: '10s' }
    await using server = await startEmbeddedPostgres({ settings })
    await using database = await createFaultDatabase(server.url)
    const { pool, schema } = database
    const committed = walks(1, COMMITS)

    await publishSteps(stepOutbox(pool, schema), pool, committed, { perTransaction: 1 })
    await server.restart('immediate')
    expect(await count(pool, `${schema}.outbox_event`)).toBe(COMMITS)

    // The proof that this could have failed: the same commits without events are forgotten.
    await pool.query(`create table ${schema}.plain (n integer)`)
    await pool.query('checkpoint')
    for (let n = 0; n < COMMITS; n += 1) await pool.query(`insert into ${schema}.plain values ($1)`, [n])
    await server.restart('immediate')
    expect(await count(pool, `${schema}.plain`)).toBeLessThan(COMMITS)
  },
)
