import { expect, test } from 'vitest'
import { systemClock } from '../../src/runtime/clock.ts'
import { workerPool } from '../../src/store/postgres/sibling-pool.ts'
import { PostgresWorkerStore } from '../../src/store/postgres/worker-store.ts'
import { claim, claimLanes, DONE, join, settled, takeLanes } from '../store/contract/helpers.ts'
import { one } from '../store/postgres/fixtures.ts'
import { eventually } from '../support/program.ts'
import { hazard, publish } from './support.ts'

test('claims, ordered or not, have sessions that nothing else meets, so that none waits for a new one', async () => {
  await using h = await hazard()
  const [others, claims] = [h.worker('others').pool, h.worker('claims').pool]
  const store = new PostgresWorkerStore({ pool: others, claims, own: false }, h.db.quoted, systemClock)
  const unordered = await join(store, { name: 'unordered' })
  const ordered = await join(store, { name: 'ordered', orderBy: 'aggregate' })
  const lanes = await takeLanes(store, ordered, 'w')
  await publish(h.db.pool, ['a'])
  const taken = [
    ...(await claim(store, unordered, 'w', 1)),
    ...(await claimLanes(store, ordered, 'w', lanes, 1)),
  ]
  expect(taken).toHaveLength(2)
  await store.settle(taken.map((delivery) => settled(delivery, DONE)))
  await store.close()

  const isClaim = (text: string): boolean => /set status = 'PROCESSING'/.test(text)
  expect(claims.sent.filter(({ text }) => isClaim(text))).toHaveLength(2)
  expect(others.sent.filter(({ text }) => isClaim(text))).toEqual([])
  expect(claims.sent.filter(({ text }) => /status = 'DONE'|outbox_event_id_seq/.test(text))).toEqual([])
})

test('a worker opens sessions for claims beside its others, and closes all of them', async () => {
  await using h = await hazard()
  const connections = workerPool(h.db.pool, () => undefined)
  const store = new PostgresWorkerStore(connections, h.db.quoted, systemClock)
  const clients = await Promise.all([connections.pool.connect(), connections.claims?.connect()])
  const pids = await Promise.all(
    clients.map(async (client) => (await client?.query('select pg_backend_pid() as pid'))?.rows[0]?.['pid']),
  )
  expect(new Set(pids).size).toBe(2)
  for (const client of clients) client?.release()
  await store.close()
  await eventually('all are closed', () =>
    one(h.db.pool, 'select count(*) = 0 from pg_stat_activity where pid = any ($1)', [pids]),
  )
})
