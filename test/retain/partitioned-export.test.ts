import { expect, test } from 'vitest'
import { exportRows } from '../../src/retain/export-rows.ts'
import { postgresStore } from '../../src/store/postgres/postgres-store.ts'
import { createOutboxDatabase } from '../store/postgres/fixtures.ts'
import { partitionInThePast, publishedOn } from '../store/postgres/partition-fixtures.ts'

test('an export of partitioned tables steps over the positions between two days', async () => {
  await using db = await createOutboxDatabase()
  await partitionInThePast(db, 3)
  const published: string[] = []
  for (const daysAgo of [3, 2, 0]) published.push(...(await publishedOn(db, { daysAgo, count: 5 })))
  const store = postgresStore({ pool: db.pool, schema: db.schema }).openExports()
  let looks = 0
  const exportItems: typeof store.exportItems = (...given) => {
    looks += 1
    return store.exportItems(...given)
  }
  const counting = new Proxy(store, {
    get: (target, name) => {
      if (name === 'exportItems') return exportItems
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const barrier = await store.proposeBarrier()
  const last = String(BigInt(barrier.position) + 1_000n)
  const until = { kind: 'until', time: new Date(Date.now() + 60_000) } as const
  const range = await store.exportRange('shop.order', '1', last, until)
  const exported: string[] = []
  for await (const { event } of exportRows(counting, { stream: 'shop.order', firstPosition: '1', range })) {
    exported.push(event.eventId)
  }
  expect(exported).toEqual(published)
  expect(looks).toBeLessThan(20)
})
