import { describe, expect, test } from 'vitest'
import { fixed } from '../../src/settle/backoff.ts'
import { subscription } from '../../src/worker/subscription.ts'
import { one } from '../store/postgres/fixtures.ts'
import { eventually } from '../support/program.ts'
import { type PostgresOutbox, postgresOutbox, type shopEvents } from './postgres-outbox.ts'

const EVENTS = 2_000

/** Counts the rows that are written from now on. */
async function countUpdates({ pool }: PostgresOutbox): Promise<() => Promise<number>> {
  await pool.query(`
    create sequence updates;
    create function count_update() returns trigger language plpgsql as $$
      begin perform nextval('updates'); return null; end $$;
    create trigger count_update after update on outbox_delivery for each row execute function count_update()`)
  return () => one<number>(pool, 'select last_value::int from updates')
}

describe('a key with a long backlog whose handler fails now and then', () => {
  test('is delivered in order, and what stands behind a failure is not written again and again', async () => {
    await using postgres = await postgresOutbox()
    const { outbox, place } = postgres
    const done: number[] = []
    await using worker = outbox.worker([
      subscription<typeof shopEvents, object>('ordered', {
        order: 'aggregate',
        lanes: 1,
        pollMs: 20,
        retry: fixed(1),
        on: {
          OrderPlaced: async ({ payload: { n } }, { attempt }) => {
            if (n % 10 === 0 && attempt === 1) throw new Error('try once more')
            done.push(n)
          },
        },
      }),
    ])
    await worker.active()
    const updates = await countUpdates(postgres)
    await place(...Array.from({ length: EVENTS }, () => 'busy'))
    await eventually('all are done', () => done.length >= EVENTS)
    expect(done).toEqual(Array.from({ length: EVENTS }, (_, n) => n + 1))
    // Taken, parked, let go, taken and done, and a few more for those that stood in one portion with a failure.
    expect((await updates()) / EVENTS).toBeLessThan(15)
  })
})
