import { expect, test } from 'vitest'
import { PostgresMonitorStore } from '../../../src/store/postgres/monitor-store.ts'
import { readGauges } from '../../../src/store/postgres/read-gauges.ts'
import { subscriptionStatuses } from '../../../src/store/postgres/subscription-statuses.ts'
import { createOutboxDatabase, insertEvent, makeDead, subscribe } from './fixtures.ts'

const MINUTE_S = 60

test.each([
  ['outbox_retry($1, $2)', 'retried'],
  [`outbox_amend($1, '{"total": 2}', $2)`, 'amended'],
])(
  '%s: a dead letter of yesterday that is %s has waited since then, and raises no alarm of a day',
  async (act) => {
    await using db = await createOutboxDatabase()
    await subscribe(db)
    const eventId = await insertEvent(db.pool)
    await db.pool.query(`update outbox_delivery set created_at = now() - interval '1 day'`)
    const { letterId } = await makeDead(db, { eventId })
    await db.pool.query(`select ${act}`, [letterId, 'kim'])

    const monitor = new PostgresMonitorStore({ pool: db.pool, own: false }, db.quoted)
    const look = { most: 100, stuckAfterMs: 5 * MINUTE_S * 1_000, leastForMean: 1, workerMissingMs: 60_000 }
    const { subscriptions: figures } = await monitor.readFigures(look)
    const { backlog } = await readGauges(db.pool, db.quoted, { countLimit: 100, timeoutMs: 20_000 })
    const statuses = await subscriptionStatuses(db.pool, db.quoted)
    expect(figures).toMatchObject([{ pending: 1, stuck: 0 }])
    const ages = [...figures, ...backlog, ...statuses].map(({ oldestPendingSeconds }) => oldestPendingSeconds)
    expect(ages).toHaveLength(3)
    for (const age of ages) expect(age).toBeLessThan(5 * MINUTE_S)
  },
)
