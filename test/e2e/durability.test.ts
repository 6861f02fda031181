import pg from 'pg'
import { expect, test } from 'vitest'
import { deferred } from '../queue/fakes.ts'
import { createFaultDatabase } from '../support/fault-database.ts'
import { startOwnPostgres } from '../support/own-postgres.ts'
import { bePatient } from '../support/patience.ts'
import { postgresAvailable } from '../support/servers.ts'
import { publishSteps, stepOutbox, walks } from '../support/steps.ts'
import { FORGETFUL, holdWalWriter } from '../support/wal-writer.ts'

bePatient()

const COMMITS = 50

const settings = { ...FORGETFUL, synchronous_commit: 'off' }

async function count(pool: pg.Pool, table: string): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(`select count(*)::int as count from ${table}`)
  return rows[0]?.count ?? 0
}

test.skipIf(!postgresAvailable())(
  'E1 events whose commit was acknowledged survive a crash, even with synchronous_commit off',
  async () => {
    await using server = await startOwnPostgres({ settings })
    await using database = await createFaultDatabase(server.url)
    const { pool, schema } = database
    const committed = walks(1, COMMITS)

    const crash = async (): Promise<void> => {
      const restarted = server.restart('immediate')
      walWriter.kill()
      await restarted
    }

    let walWriter = await holdWalWriter(pool)
    await publishSteps(stepOutbox(pool, schema), pool, committed, { perTransaction: 1 })
    await crash()
    expect(await count(pool, `${schema}.outbox_event`)).toBe(COMMITS)

    // The proof that this could have failed: the same commits without events are forgotten.
    await pool.query(`create table ${schema}.plain (n integer)`)
    await pool.query('checkpoint')
    walWriter = await holdWalWriter(pool)
    for (let n = 0; n < COMMITS; n += 1) await pool.query(`insert into ${schema}.plain values ($1)`, [n])
    await crash()
    expect(await count(pool, `${schema}.plain`)).toBeLessThan(COMMITS)
  },
)

test.skipIf(!postgresAvailable())(
  'U1 what a worker has taken in order stays taken in a crash, even with synchronous_commit off',
  async () => {
    await using server = await startOwnPostgres({ settings })
    await using database = await createFaultDatabase(server.url)
    const { pool, schema } = database
    const outbox = stepOutbox(pool, schema)
    const [handled, begun, end] = [deferred(), deferred(), deferred()]
    const slow = outbox.subscription('slow', {
      oneAtATime: true,
      on: {
        StepTaken: () => handled.resolve(),
        StepRetraced: async () => {
          begun.resolve()
          await end.promise
        },
      },
    })
    await using worker = outbox.worker([slow])
    await worker.active()
    // Behind the first claim the low-water bound is moved on, whose commit waits for the disk; and about a second later again.
    await publishSteps(outbox, pool, walks(1, 1))
    await handled.promise
    await publishSteps(outbox, pool, walks(1, 1), { type: 'StepRetraced' })
    await begun.promise

    await server.restart('immediate')

    // Somebody else would run it too, while its handler is still at it.
    const { rows } = await pool.query(
      `select status, locked_by from ${schema}.outbox_delivery order by id desc limit 1`,
    )
    expect(rows).toEqual([{ status: 'PROCESSING', locked_by: worker.id }])
    end.resolve()
  },
)
