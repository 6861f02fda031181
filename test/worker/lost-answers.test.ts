import { describe, expect, test } from 'vitest'
import { createOutbox } from '../../src/outbox.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { NonRetryableError } from '../../src/runtime/errors.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { SeamClient } from '../seams/seam-client.ts'
import { namingOperations, SeamPool } from '../seams/seam-pool.ts'
import { eventually } from '../support/program.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { fitForWorkers } from '../support/worker-url.ts'
import { type PostgresOutbox, postgresOutbox, shopEvents } from './postgres-outbox.ts'

/** Longer than a test waits: whatever happens is not the doing of a poll. */
const NEVER_MS = 600_000

/** A worker's process of its own, of whose statements single answers can be lost. */
function processOn({ database: { url, schema } }: PostgresOutbox) {
  const pool = new SeamPool(sturdyPool({ Client: SeamClient, connectionString: fitForWorkers(url), max: 6 }))
  const store = namingOperations(postgresStore({ pool, schema }))
  const outbox = createOutbox({ store, events: shopEvents, notify: false, clock: { ...systemClock } })
  return { pool, outbox }
}

const statuses = async ({ pool }: PostgresOutbox): Promise<readonly string[]> => {
  const { rows } = await pool.query<{ status: string }>('select status from outbox_delivery order by id')
  return rows.map(({ status }) => status)
}

describe('when the answer to a claim is lost', () => {
  test.each(['none', 'aggregate'] as const)(
    'of a suspect, order %s: it is not charged with a crash, because nobody ran it',
    async (order) => {
      await using postgres = await postgresOutbox()
      const { pool, outbox } = processOn(postgres)
      const ran: string[] = []
      const worker = outbox.worker(
        [
          outbox.subscription('sub', {
            ...(order === 'none' ? {} : { order, lanes: 1 }),
            maxAttempts: 1,
            pollMs: 20,
            on: { OrderPlaced: ({ aggregateId }) => void ran.push(aggregateId) },
          }),
        ],
        { housekeepingMs: 20, listen: false },
      )
      await worker.active()
      const suspectsClaimed = pool.trap(
        'claimSuspects: insert into outbox_lease + update outbox_delivery',
        'outcome-unknown',
        async () => {
          await postgres.pool.query(`
            update outbox_delivery set locked_until = clock_timestamp() where status = 'PROCESSING';
            update outbox_lease set until = clock_timestamp()`)
        },
      )
      await postgres.pool.query(`update outbox_subscription set paused_at = now(), paused_by = 'test'`)
      await postgres.place('a')
      await postgres.pool.query(`
        update outbox_delivery set fresh = false, held = true, suspect = true, next_retry_at = now();
        update outbox_subscription set paused_at = null, paused_by = null`)
      await suspectsClaimed
      await eventually('it is settled', async () =>
        ['DONE', 'DEAD'].includes((await statuses(postgres))[0] ?? ''),
      )
      expect(await statuses(postgres)).toEqual(['DONE'])
      expect(ran).toEqual(['a'])
      await worker.stop()
      await pool.end()
    },
  )

  test('other keys of its lane do not wait for the slowest handler, and what is in hand runs once', async () => {
    await using postgres = await postgresOutbox()
    const { pool, outbox } = processOn(postgres)
    const ran: string[] = []
    let finish = (): void => undefined
    const slow = new Promise<void>((resolve) => {
      finish = resolve
    })
    const worker = outbox.worker(
      [
        outbox.subscription('sub', {
          order: 'aggregate',
          lanes: 1,
          pollMs: NEVER_MS,
          pollMinMs: NEVER_MS,
          on: {
            OrderPlaced: async ({ aggregateId, payload }) => {
              ran.push(`${aggregateId}${payload.n}`)
              if (aggregateId === 'slow' && payload.n === 1) await slow
            },
          },
        }),
      ],
      { listen: false },
    )
    await worker.active()
    await postgres.place('slow')
    worker.wake()
    await eventually('the slow one runs', () => ran.length === 1)
    const lost = pool.trap(
      'claimLanes: insert into outbox_lease + update outbox_delivery',
      'outcome-unknown',
      async () => {},
    )
    await postgres.place('quick', 'slow', 'quick')
    worker.wake()
    await lost
    await eventually('the other key is done', () => ran.length === 3)
    expect(ran).toEqual(['slow1', 'quick2', 'quick4'])
    finish()
    await eventually('all is done', async () =>
      (await statuses(postgres)).every((status) => status === 'DONE'),
    )
    expect(ran).toEqual(['slow1', 'quick2', 'quick4', 'slow3'])
    const { rows } = await postgres.pool.query('select attempt_count, suspect from outbox_delivery')
    expect(rows).toEqual(rows.map(() => ({ attempt_count: 1, suspect: false })))
    await worker.stop()
    await pool.end()
  })
})

test('an event is not DONE while an earlier one of its key that died, and let it go on, may come again', async () => {
  await using postgres = await postgresOutbox()
  const { pool, outbox } = processOn(postgres)
  const worker = outbox.worker(
    [
      outbox.subscription('sub', {
        order: 'aggregate',
        lanes: 1,
        onDead: 'continue',
        pollMs: 20,
        on: {
          OrderPlaced: ({ payload }) => {
            if (payload.n === 1) throw new NonRetryableError('it is broken')
          },
        },
      }),
    ],
    { listen: false },
  )
  await worker.active()
  const seam = 'settle: update outbox_delivery + insert into outbox_dead_letter'
  const dies = pool.trap(seam, 'crash-before', async () => {})
  await postgres.place('a', 'a', 'a')
  await dies
  expect(await statuses(postgres)).toEqual(['PROCESSING', 'PROCESSING', 'PROCESSING'])
  await pool.end()
})
