import { expect, test } from 'vitest'
import type { WorkerEvent } from '../../src/observe/worker-events.ts'
import { subscription } from '../../src/worker/subscription.ts'
import { recordLeases } from '../support/leases.ts'
import { eventually } from '../support/program.ts'
import { postgresOutbox, type shopEvents } from './postgres-outbox.ts'

test('a row that the database refuses to let die does not keep other subscriptions from being recovered', async () => {
  await using postgres = await postgresOutbox()
  const { outbox, pool } = postgres
  const ran: string[] = []
  const refused: WorkerEvent[] = []
  const declare = (name: string) =>
    subscription<typeof shopEvents, object>(name, {
      maxAttempts: 1,
      pollMs: 50,
      on: { OrderPlaced: () => void ran.push(name) },
    })
  const names = ['refused', 'other']
  const make = () =>
    outbox.worker(names.map(declare), {
      housekeepingMs: 50,
      listen: false,
      observers: [(event) => void (event.kind === 'error' && refused.push(event))],
    })
  const first = make()
  await first.active()
  await first.stop()
  await postgres.place('a')
  // As a worker leaves them that is killed: one ran alone, for the last time, and the other among others.
  await pool.query(`
    update outbox_delivery d
       set status = 'PROCESSING', fresh = false, suspect = s.name = 'refused', attempt_count = 1, locked_by = 'killed',
           locked_until = clock_timestamp() - interval '1 s', lease_token = nextval('outbox_lease_token')
      from outbox_subscription s where s.id = d.subscription_id`)
  await recordLeases(pool)
  await pool.query(`
    create function refuse() returns trigger language plpgsql as $$ begin raise 'the alert is not sent'; end $$;
    create trigger refuse before update on outbox_delivery for each row when (new.status = 'DEAD')
      execute function refuse()`)
  const second = make()
  await second.active()
  await eventually('the other is run', () => ran.length > 0)
  expect(ran).toEqual(['other'])
  expect(refused).toMatchObject([{ during: 'recovery', error: { message: 'the alert is not sent' } }])
  await second.stop()
})
