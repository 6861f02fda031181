import { describe, expect, test } from 'vitest'
import type { WorkerEvent } from '../../src/observe/worker-events.ts'
import { fixed } from '../../src/settle/backoff.ts'
import { subscription } from '../../src/worker/subscription.ts'
import type { SubscriptionHandlers } from '../../src/worker/subscription-options.ts'
import { one } from '../store/postgres/fixtures.ts'
import { lapseLeases } from '../support/leases.ts'
import { eventually } from '../support/program.ts'
import { stopRefusing } from '../support/stop-refusing.ts'
import { postgresOutbox, type shopEvents } from './postgres-outbox.ts'

type Handler = NonNullable<SubscriptionHandlers<typeof shopEvents, object>['OrderPlaced']>

/** A worker of an ordered subscription, and a trigger of the user's own that refuses some writes for the first event. */
async function setup(refuses: string, { leaseMs, handle }: { leaseMs: number; handle?: Handler }) {
  const postgres = await postgresOutbox()
  const { outbox, pool } = postgres
  await pool.query(`
    create function refuse() returns trigger language plpgsql as $$ begin raise 'the audit says no'; end $$;
    create trigger refuse before update on outbox_delivery for each row when (${refuses}) execute function refuse()`)
  const ran: number[] = []
  const refused: Extract<WorkerEvent, { readonly kind: 'error' }>[] = []
  const worker = outbox.worker(
    [
      subscription<typeof shopEvents, object>('ordered', {
        order: 'aggregate',
        lanes: 1,
        pollMs: 20,
        retry: fixed(1),
        on: {
          OrderPlaced: (event, ctx) => {
            ran.push(event.payload.n)
            return handle?.(event, ctx)
          },
        },
      }),
    ],
    {
      leaseMs,
      housekeepingMs: 50,
      listen: false,
      observers: [(event) => void (event.kind === 'error' && refused.push(event))],
    },
  )
  await worker.active()
  const untilDone = (count: number): Promise<void> =>
    eventually(`${count} are done`, async () => (await outbox.status())[0]?.counts.DONE === count)
  const end = async (): Promise<void> => {
    await worker.stop()
    await postgres[Symbol.asyncDispose]()
  }
  return { ...postgres, workerId: worker.id, ran, refused, untilDone, end }
}

const untilRefused = ({ refused }: { readonly refused: readonly WorkerEvent[] }): Promise<void> =>
  eventually('it is refused', () => refused.length > 0)

describe('a result that a trigger refuses', () => {
  test('is told once, with its event, and stops its key and no other until the database takes it', async () => {
    const s = await setup(`new.last_error_code = 'BOOM'`, {
      leaseMs: 30_000,
      handle: (event, ctx) => {
        if (event.payload.n > 1 || ctx.attempt > 1) return
        throw Object.assign(new Error('not today'), { code: 'BOOM' })
      },
    })
    await s.place('a')
    await untilRefused(s)
    await s.place('a', 'b')
    await s.untilDone(1)
    const behind = `select next_retry_at = 'infinity' from outbox_delivery where status = 'PENDING'`
    await eventually('the one behind it is parked', async () => (await one(s.pool, behind)) === true)
    expect(s.ran, 'the other key goes on, its own waits').toEqual([1, 3])
    await stopRefusing(s.pool)
    await s.untilDone(3)
    expect(s.ran.filter((n) => n !== 3)).toEqual([1, 1, 2])
    const eventId = await one<string>(s.pool, 'select event_id from outbox_event order by id limit 1')
    expect(s.refused).toMatchObject([{ during: 'settle', subscription: 'ordered' }])
    expect(s.refused[0]?.error).toMatchObject({
      code: 'STORE_REFUSED',
      message: expect.stringMatching(new RegExp(`event ${eventId}: the audit says no`)),
    })
    await s.end()
  })

  test.each([
    ['under a code of its own', `raise 'the audit says no' using errcode = 'AU001'`],
    ['because it is broken', `perform audit_that_was_dropped(new.id)`],
  ])('%s keeps no other from being written', async (_, refusal) => {
    const s = await setup(`new.status = 'DONE' and new.ordering_key = 'order:a'`, { leaseMs: 30_000 })
    await s.pool.query(
      `create or replace function refuse() returns trigger language plpgsql as $$ begin ${refusal}; end $$`,
    )
    await s.place('a', 'b', 'c')
    await s.untilDone(2)
    await untilRefused(s)
    expect(s.refused).toMatchObject([{ during: 'settle', error: { code: 'STORE_REFUSED' } }])
    await stopRefusing(s.pool)
    await s.untilDone(3)
    expect(s.ran).toHaveLength(3)
    await s.end()
  })

  test('is written without another attempt when the database takes it before the lease lapses', async () => {
    const s = await setup(`new.status = 'DONE'`, { leaseMs: 30_000 })
    await s.place('a')
    await untilRefused(s)
    await stopRefusing(s.pool)
    await s.untilDone(1)
    expect(s.ran).toEqual([1])
    await s.end()
  })

  test('comes again when its lease has lapsed, before anything later of its key', async () => {
    const s = await setup(`new.status = 'DONE' and not old.suspect and new.ordering_key = 'order:a'`, {
      // The worker learns of it with its next heartbeat.
      leaseMs: 15_000,
    })
    await s.place('a')
    await untilRefused(s)
    await s.pool.query(
      `create or replace function refuse() returns trigger language plpgsql as $$ begin
         if new.id > (select min(id) from outbox_delivery) then return new; end if;
         raise 'the audit says no';
       end $$`,
    )
    await s.place('a', 'b')
    await lapseLeases(s.pool, s.workerId)
    await s.untilDone(3)
    expect(s.ran.filter((n) => n !== 3)).toEqual([1, 1, 2])
    await s.end()
  })
})
