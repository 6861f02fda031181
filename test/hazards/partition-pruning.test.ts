import { describe, expect, test } from 'vitest'
import { type PgPool, rawQuery, withClient } from '../../src/store/postgres/client.ts'
import { partitionTables } from '../../src/store/postgres/partition-tables.ts'
import { withSessionSettings } from '../../src/store/postgres/session-settings.ts'
import { join } from '../store/contract/helpers.ts'
import { isPartitioned } from '../support/install-tables.ts'
import { bePatient } from '../support/patience.ts'
import { postgresAvailable } from '../support/servers.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { createOwnServer, type Hazard, hazard, publish } from './support.ts'

bePatient()

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']

// Stops where it is told to, and then needs memory, as any function may: it gets what the server has just given back.
const BE_BUSY = `
  create function be_busy(id bigint) returns boolean language plpgsql as $$
    declare
      digest text;
      digests text;
    begin
      perform pg_advisory_xact_lock_shared(4711);
      for digest in execute 'select md5(n::text) from generate_series(1, 300) n order by 1' loop
        digests := concat(digests, digest);
      end loop;
      return true;
    end $$`

const LOCK_ONE_BY_ONE = `
  select l.id is not null, be_busy(r.id)
    from (select d.id from outbox_delivery d where be_busy(d.id) order by d.id) r
    left join lateral (
      select d.id from outbox_delivery d where d.id = r.id and d.subscription_id = $1 for update skip locked) l on true`

/** Rows that are locked one by one by their key, after some of them have changed: how many could be. */
async function lockChangedRows(h: Hazard, sessions: PgPool): Promise<number> {
  const holder = await h.connect('holder')
  await holder.query('begin; select pg_advisory_xact_lock(4711)')
  const locking = withClient(sessions, (client) => rawQuery(client, LOCK_ONE_BY_ONE, [1]))
  await Promise.race([h.untilBlocked('w'), locking])
  await h.db.pool.query(`update outbox_delivery set updated_at = clock_timestamp() where mod(id, 3) = 0`)
  await holder.query('commit')
  return (await locking).filter(([isLocked]) => isLocked === 't').length
}

async function inPartitions({ db: { schema, pool } }: Hazard): Promise<void> {
  if (!isPartitioned) await partitionTables(pool, { schema })
}

async function published(): Promise<Hazard & { readonly sessions: PgPool }> {
  const h = await hazard(createOwnServer)
  const { schema, pool, url } = h.db
  const sessions = sturdyPool({ connectionString: url, application_name: `${schema} w` })
  await pool.query(BE_BUSY)
  await join(h.worker('joining').store, { orderBy: 'aggregate' })
  await publish(pool, KEYS)
  const dispose = async (): Promise<void> => {
    await sessions.end()
    await h[Symbol.asyncDispose]()
  }
  return { ...h, sessions, [Symbol.asyncDispose]: dispose }
}

// A fault of the server: PostgreSQL 18 looks at a changed row again with what the statement itself chooses partitions by, and
// frees that when the lock's rows have come to an end, although they may be asked for again.
describe.skipIf(!postgresAvailable())('partitioned rows that change while a statement locks them', () => {
  test('end the server where it may choose partitions while the statement runs', async () => {
    await using h = await published()
    await inPartitions(h)
    await expect(lockChangedRows(h, h.sessions)).rejects.toThrow(/terminated unexpectedly|ECONNRESET/)
  })

  test.each([
    ['of its own', true],
    ['that others use too', false],
  ])('are locked in sessions %s', async (_, own) => {
    await using h = await published()
    await inPartitions(h)
    expect(await lockChangedRows(h, withSessionSettings(h.sessions, own))).toBe(KEYS.length)
  })

  test.each([
    ['of its own', true],
    ['that others use too', false],
  ])('are locked in sessions %s, at work since before there were partitions', async (_, own) => {
    await using h = await published()
    const sessions = withSessionSettings(h.sessions, own)
    await withClient(sessions, (client) => rawQuery(client, 'select 1', []))
    await inPartitions(h)
    expect(await lockChangedRows(h, sessions)).toBe(KEYS.length)
  })
})
