import { expect, test } from 'vitest'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { PgPool } from '../../../src/store/postgres/client.ts'
import { PostgresWorkerStore } from '../../../src/store/postgres/worker-store.ts'
import { claimLanes, DONE, join, settled, takeLanes } from '../contract/helpers.ts'
import { column, createOutboxDatabase, insertEvent, type OutboxDatabase } from './fixtures.ts'

/** A pool whose connections break at the second statement that makes deliveries DONE. */
function breakingPool(db: OutboxDatabase): PgPool {
  let sent = 0
  return {
    connect: async () => {
      const client = await db.pool.connect()
      const query = async (
        first: { readonly text?: string } | string,
        values?: unknown[],
      ): Promise<unknown> => {
        const text = typeof first === 'string' ? first : (first.text ?? '')
        if (text.includes(`status = 'DONE'`)) sent += 1
        if (sent > 1) throw Object.assign(new Error('terminated'), { code: '57P01' })
        return client.query(first as never, values as never)
      }
      return { query: query as never, release: (destroy?: boolean) => client.release(destroy) }
    },
    end: async () => undefined,
  }
}

test('of one key what came first is DONE first, whichever claim had a result first', async () => {
  await using db = await createOutboxDatabase()
  const store = new PostgresWorkerStore({ pool: breakingPool(db), own: false }, db.quoted, systemClock)
  const sub = await join(store, { orderBy: 'aggregate', lanes: 1 })
  const lanes = await takeLanes(store, sub, 'w')
  await insertEvent(db.pool, { aggregateId: 'key' })
  const [first] = await claimLanes(store, sub, 'w', lanes)
  await insertEvent(db.pool, { aggregateId: 'other' })
  await insertEvent(db.pool, { aggregateId: 'key' })
  const [other, second] = await claimLanes(store, sub, 'w', lanes)
  if (first === undefined || other === undefined || second === undefined) throw new Error('nothing claimed')

  const batch = [other, first, second].map((delivery) => settled(delivery, DONE))
  await expect(store.settle(batch)).rejects.toThrow('terminated')

  const states = await column(db.pool, 'select status from outbox_delivery order by id')
  expect(states).toEqual(['DONE', 'PROCESSING', 'PROCESSING'])
})
