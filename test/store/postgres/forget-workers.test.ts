import { expect, test } from 'vitest'
import { subscription } from '../../../src/worker/subscription.ts'
import { eventually } from '../../support/program.ts'
import { postgresOutbox, type shopEvents } from '../../worker/postgres-outbox.ts'
import { column } from './fixtures.ts'

test('the row of a worker that was killed is removed by another, a day later and not before', async () => {
  await using postgres = await postgresOutbox()
  await postgres.pool.query(
    `insert into outbox_worker (worker_id, subscription_ids, host, pid, until)
     values ('killed long ago', '{1}', 'gone', 1, now() - interval '25 hours'),
            ('killed today', '{1}', 'gone', 2, now() - interval '23 hours')`,
  )
  const worker = postgres.outbox.worker(
    [subscription<typeof shopEvents, object>('s', { on: { OrderPlaced: () => undefined } })],
    { workerId: 'alive', housekeepingMs: 20, listen: false },
  )
  await worker.start()
  const workers = (): Promise<readonly string[]> =>
    column(postgres.pool, 'select worker_id from outbox_worker order by 1')
  await eventually('one is forgotten', async () => (await workers()).length < 3)
  expect(await workers()).toEqual(['alive', 'killed today'])
  await worker.stop()
})
