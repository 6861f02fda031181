import { expect, test } from 'vitest'
import { PostgresMonitorStore } from '../../src/store/postgres/monitor-store.ts'
import { explain, mostRowsScanned, seqScans } from './plan.ts'
import { SteppingPool } from './stepping-pool.ts'
import { createOwnDatabase, hazard } from './support.ts'

const ROWS = 300_000
const WAITING = 20_000
const MOST = 101
const SAMPLE = 10 * MOST

/**
 * As large as the tables are after a while: most is done, much waits, and nobody looked after the dead letters. One by one: exports
 * wait for all transactions of the server.
 */
const FILL = [
  `set session_replication_role = replica`,
  `insert into outbox_subscription (name, order_by, lanes, on_dead, max_attempts, start_from, state, joined_snapshot)
    values ('plain', 'none', 0, 'block', 3, 'now', 'active', pg_current_snapshot()),
           ('ordered', 'aggregate', 4, 'block', 3, 'now', 'active', pg_current_snapshot())`,
  `insert into outbox_delivery (subscription_id, lane, id, event_id, status, fresh, attempt_count, max_attempts, processed_at)
    select 1, 0, n, gen_random_uuid(), 'DONE', false, 1, 3, now() from generate_series(1, ${ROWS}) n`,
  `insert into outbox_delivery (subscription_id, lane, id, event_id, max_attempts)
    select 1, 0, n, gen_random_uuid(), 3 from generate_series(${ROWS + 1}, ${ROWS + WAITING}) n`,
  `insert into outbox_delivery (subscription_id, lane, id, event_id, ordering_key, max_attempts, fresh, held, next_retry_at)
    select 2, n % 4, n, gen_random_uuid(), n::text, 3, n % 2 <> 0, n % 2 = 0, case when n % 2 = 0 then now() end
      from generate_series(${ROWS + 1}, ${ROWS + WAITING}) n`,
  `insert into outbox_dead_letter (subscription, subscription_id, lane, position, event_id, stream, event_type,
         schema_version, aggregate_type, aggregate_id, payload, headers, occurred_at, error_code, error_message,
         retry_count, reason, fingerprint)
    select 'plain', 1, 0, n, gen_random_uuid(), 's', 'T', 1, 'a', 'b', '{}', '{}', now(), 'BOOM', '', 0,
           'RETRIES_EXHAUSTED', 'f'
      from generate_series(1, 20000) n`,
]

test.each(['with statistics', 'without'])(
  'a look reads as much in large tables as in small ones, %s',
  async (how) => {
    await using h = await hazard(createOwnDatabase)
    const client = await h.connect('explain')
    for (const statement of FILL) await client.query(statement)
    if (how === 'with statistics') await client.query('analyze')
    const pool = new SteppingPool(h.db.pool)
    const store = new PostgresMonitorStore({ pool, own: false }, h.db.quoted)
    const request = { most: MOST, stuckAfterMs: 300_000, leastForMean: 10, workerMissingMs: 60_000 }
    expect((await store.readFigures(request)).subscriptions).toMatchObject([
      { name: 'ordered', pending: MOST },
      { name: 'plain', pending: MOST, dead: MOST },
    ])
    await store.readOpenLetters(MOST)
    expect((await store.readUntoldLetters(10)).ids).toHaveLength(10_000)
    // As the statements are run: with the settings that their transaction begins with.
    const settings = pool.lastSent(/enable_bitmapscan/)
    await client.query(settings.text.replaceAll('true)', 'false)'), [...settings.values])
    for (const statement of [/tried as materialized/, /over \(\)/, /order by l\.id limit \$1\s*$/]) {
      const plan = await explain(client, pool.lastSent(statement))
      expect(mostRowsScanned(plan), statement.source).toBeLessThanOrEqual(SAMPLE)
      expect(
        seqScans(plan).filter((table) => table !== 'outbox_subscription' && table !== 'outbox_worker'),
      ).toEqual([])
    }
  },
)
