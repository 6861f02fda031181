import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrateUp } from '../../../src/store/postgres/migrate.ts'
import type { EmbeddedPostgres } from '../../../src/testing/index.ts'
import { startOwnPostgres } from '../../support/own-postgres.ts'
import { postgresAvailable } from '../../support/servers.ts'
import { proofOn } from './proof-fixtures.ts'

// What needs a server of its own: settings of the whole server, and what would hold up all other tests.
describe.skipIf(!postgresAvailable())('the doctor, on a server of its own', () => {
  let server: EmbeddedPostgres
  let pool: pg.Pool

  beforeAll(async () => {
    server = await startOwnPostgres({ fsync: true, settings: { max_prepared_transactions: 2 } })
    pool = new pg.Pool({ connectionString: server.url })
    await migrateUp(pool)
  })
  afterAll(async () => {
    await pool.end()
    await server.stop()
  })

  const everyLimit = { transactionSeconds: 0, slotTransactions: 0 }
  const held = async (): Promise<readonly unknown[]> => {
    const { findings } = await proofOn(pool, 'commitpost').doctor(everyLimit)
    return findings.filter(({ check }) => check === 'xmin').map(({ facts }) => facts)
  }

  test('finds nobody who holds anything, and a server that writes to disk', async () => {
    const { severity, findings } = await proofOn(pool, 'commitpost').doctor()
    expect(severity).toBe('ok')
    expect(findings.map(({ code }) => code)).toEqual(expect.arrayContaining(['XMIN_FREE', 'DURABLE']))
  })

  test('names a prepared transaction that was forgotten', async () => {
    const client = await pool.connect()
    await client.query(`begin; create table forgotten (); prepare transaction 'gone home'`)
    expect(await held()).toMatchObject([{ kind: 'prepared', name: 'gone home', pid: null }])
    await client.query(`rollback prepared 'gone home'`)
    client.release()
  })

  test('names a replication slot that nobody reads', async () => {
    await pool.query(`select pg_create_logical_replication_slot('left_behind', 'pgoutput')`)
    await pool.query('create table later ()')
    expect(await held()).toMatchObject([{ kind: 'slot', name: 'left_behind' }])
    await pool.query(`select pg_drop_replication_slot('left_behind')`)
  })
})
