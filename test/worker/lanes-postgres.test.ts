import { describe, expect, test } from 'vitest'
import type { WorkerEvent } from '../../src/observe/worker-events.ts'
import { subscription } from '../../src/worker/subscription.ts'
import type { SubscriptionHandlers } from '../../src/worker/subscription-options.ts'
import { recordLeases } from '../support/leases.ts'
import { eventually } from '../support/program.ts'
import { stopRefusing } from '../support/stop-refusing.ts'
import { type PostgresOutbox, postgresOutbox, type shopEvents } from './postgres-outbox.ts'

type Handler = NonNullable<SubscriptionHandlers<typeof shopEvents, object>['OrderPlaced']>

/** Longer than a test waits: whatever happens is not the doing of a poll. */
const NEVER_MS = 600_000
const LANES = 4

const ordered = (handle: Handler, pollMs: number, lanes = LANES) =>
  subscription<typeof shopEvents, object>('sub', {
    order: 'aggregate',
    lanes,
    maxAttempts: 1,
    pollMs,
    pollMinMs: pollMs,
    on: { OrderPlaced: handle },
  })

/** Keys of as many lanes, one of each, by number. */
async function keysOfLanes({ pool }: PostgresOutbox): Promise<readonly string[]> {
  const { rows } = await pool.query<{ key: string }>(
    `select min(key) as key from (select 'k' || n as key from generate_series(1, 50) as n) k
      group by outbox_lane_of('order:' || key, ${LANES}::smallint)
      order by outbox_lane_of('order:' || key, ${LANES}::smallint)`,
  )
  return rows.map(({ key }) => key)
}

describe('the lanes of an ordered subscription', () => {
  test('are taken although the database refuses to have something of one returned', async () => {
    await using postgres = await postgresOutbox()
    const { outbox, pool, place } = postgres
    const ran: string[] = []
    const told: WorkerEvent[] = []
    const make = () =>
      outbox.worker([ordered(({ aggregateId }) => void ran.push(aggregateId), 20)], {
        listen: false,
        leaseMs: 2_000,
        observers: [
          (event) => void (event.kind === 'error' && event.during === 'taking lanes' && told.push(event)),
        ],
      })
    const first = make()
    await first.active()
    await first.stop()
    const keys = Array.from({ length: 20 }, (_, n) => `key ${n}`)
    await place(...keys)
    // As a worker leaves it that is killed while it ran this one alone, for the last time.
    const { rows } = await pool.query<{ lane: number }>(`
      update outbox_delivery d
         set status = 'PROCESSING', fresh = false, suspect = true, attempt_count = 1, locked_by = 'killed',
             locked_until = clock_timestamp() - interval '1 s', lease_token = nextval('outbox_lease_token')
       where d.id = (select min(id) from outbox_delivery) returning d.lane`)
    await recordLeases(pool)
    await pool.query(`
      create function refuse() returns trigger language plpgsql as $$ begin raise 'the alert is not sent'; end $$;
      create trigger refuse before update on outbox_delivery for each row when (new.status = 'DEAD')
        execute function refuse()`)
    const others = await pool.query<{ count: number }>(
      'select count(*)::int as count from outbox_delivery where lane <> $1',
      [rows[0]?.lane],
    )
    const second = make()
    await second.active()
    // Each once at least: what loses its lease on a busy machine runs again.
    await eventually('the other lanes are served', () => new Set(ran).size === others.rows[0]?.count)
    await eventually('it is told', () => told.length > 0)
    expect(told).toMatchObject([{ error: { message: 'the alert is not sent' } }])
    await stopRefusing(pool)
    await eventually('its lane is served', async () => {
      const open = await pool.query(
        `select from outbox_delivery where status in ('PENDING', 'PROCESSING') and not held`,
      )
      return open.rowCount === 0
    })
    await second.stop()
  })

  test('of which a worker that stops has nothing in hand are served by others while its last handler runs', async () => {
    await using postgres = await postgresOutbox()
    const { outbox, place } = postgres
    const ran: string[] = []
    let finish = (): void => undefined
    const slow = new Promise<void>((resolve) => {
      finish = resolve
    })
    const make = (workerId: string) =>
      outbox.worker(
        [
          ordered(async ({ aggregateId }) => {
            ran.push(`${workerId} ${aggregateId}`)
            if (ran.length === 1) await slow
          }, 20),
        ],
        { workerId, listen: false, leaseMs: 1_000, drainMs: 60_000 },
      )
    const one = make('one')
    await one.active()
    await place('slow')
    await eventually('the slow one runs', () => ran.length === 1)
    const two = make('two')
    await two.active()
    const stopped = one.stop()
    const keys = await keysOfLanes(postgres)
    await place(...keys)
    const served = (workerId = ''): number => new Set(ran.filter((text) => text.startsWith(workerId))).size
    await eventually('three lanes are served', () => served('two') >= 3)
    finish()
    await eventually('the last lane is served too', () => served() > keys.length)
    expect(ran.filter((text) => text.startsWith('one'))).toEqual(['one slow'])
    await stopped
    await two.stop()
  })

  test('one of which has a busy key, and little room, is asked for more as soon as there is room', async () => {
    await using postgres = await postgresOutbox()
    const { outbox, place } = postgres
    let ran = 0
    const worker = outbox.worker(
      [
        ordered(
          async () => {
            await Promise.resolve()
            ran += 1
          },
          NEVER_MS,
          16,
        ),
      ],
      { listen: false },
    )
    await worker.active()
    await place(...Array.from({ length: 2_000 }, () => 'hot'))
    worker.wake()
    await eventually('all are done', () => ran === 2_000)
    await worker.stop()
  })
})
