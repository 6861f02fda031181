import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import type { WorkerEvent } from '../../src/observe/worker-events.ts'
import { fixed } from '../../src/settle/backoff.ts'
import { subscription } from '../../src/worker/subscription.ts'
import type { SubscriptionHandlers } from '../../src/worker/subscription-options.ts'
import { eventually } from '../support/program.ts'
import { type PostgresOutbox, postgresOutbox, type shopEvents } from './postgres-outbox.ts'

type Handler = NonNullable<SubscriptionHandlers<typeof shopEvents, object>['OrderPlaced']>
type Kind = WorkerEvent['kind']

/** A worker of an ordered subscription whose handler does its first event in a transaction of its own. */
async function setup(
  first: (
    tx: pg.PoolClient,
    complete: () => Promise<void>,
    signal: AbortSignal,
    completeIn: (other: pg.PoolClient) => Promise<void>,
  ) => Promise<void>,
  timeoutMs: number | null = null,
) {
  const postgres = await postgresOutbox()
  const { outbox, pool } = postgres
  const ran: number[] = []
  const observed: WorkerEvent[] = []
  const handle: Handler = async (event, ctx) => {
    ran.push(event.payload.n)
    if (event.payload.n !== 1 || ctx.attempt > 1) return
    const tx = await pool.connect()
    await tx.query('begin')
    await first(
      tx,
      () => ctx.complete(tx),
      ctx.signal,
      (other) => ctx.complete(other),
    )
  }
  const worker = outbox.worker(
    [
      subscription<typeof shopEvents, object>('ordered', {
        order: 'aggregate',
        lanes: 1,
        pollMs: 20,
        timeoutMs,
        retry: fixed(1),
        on: { OrderPlaced: handle },
      }),
    ],
    { observers: [(event) => void observed.push(event)] },
  )
  await worker.active()
  const told = (kind: Kind): readonly WorkerEvent[] => observed.filter((event) => event.kind === kind)
  const untilDone = (count: number): Promise<void> =>
    eventually(`${count} are done`, async () => (await doneOf(postgres)) === count)
  const end = async (): Promise<void> => {
    await worker.stop()
    await postgres[Symbol.asyncDispose]()
  }
  return { ...postgres, ran, told, untilDone, end }
}

async function doneOf({ outbox }: Pick<PostgresOutbox, 'outbox'>): Promise<number | undefined> {
  return (await outbox.status())[0]?.counts.DONE
}

describe('a handler that completes its event in its own transaction', () => {
  test('and rolls that back and returns is tried again at once, before later events of its key', async () => {
    const s = await setup(async (tx, complete) => {
      await complete()
      await tx.query('rollback')
      tx.release()
    })
    await s.place('a', 'a', 'a')
    await s.untilDone(3)
    expect(s.ran).toEqual([1, 1, 2, 3])
    expect(s.told('retried')).toMatchObject([{ failure: { code: 'NOT_COMMITTED' }, attempt: 1 }])
    expect(s.told('leaseLost')).toEqual([])
    await s.end()
  })

  test.each(['commit', 'rollback'] as const)(
    'and returns before it is ended by %s: comes out right',
    async (end) => {
      const open: pg.PoolClient[] = []
      const s = await setup(async (tx, complete) => {
        await complete()
        open.push(tx)
      })
      await s.place('a', 'a', 'b')
      await s.untilDone(1)
      await eventually('it is completed, and open', () => open.length === 1)
      expect(
        s.ran.toSorted((a, b) => a - b),
        'the other key goes on, its own waits',
      ).toEqual([1, 3])
      await open[0]?.query(end)
      open[0]?.release()
      await s.untilDone(3)
      expect(s.ran.filter((n) => n !== 3)).toEqual(end === 'commit' ? [1, 2] : [1, 1, 2])
      expect(s.told('retried')).toHaveLength(end === 'commit' ? 0 : 1)
      expect(s.told('leaseLost')).toEqual([])
      await s.end()
    },
  )

  test('and throws after the commit: the event is done, and what was thrown is told', async () => {
    const s = await setup(async (tx, complete) => {
      await complete()
      await tx.query('commit')
      tx.release()
      throw Object.assign(new Error('too late'), { code: 'TOO_LATE' })
    })
    await s.place('a', 'a')
    await s.untilDone(2)
    await eventually('both are told', () => s.told('handled').length === 2)
    expect(s.ran).toEqual([1, 2])
    expect(s.told('handled')).toMatchObject([{ failure: { code: 'TOO_LATE' } }, {}])
    expect([...s.told('leaseLost'), ...s.told('retried')]).toEqual([])
    await s.end()
  })

  test.each([
    ['again after a savepoint in which it did was rolled back', 'rollback to savepoint within'],
    ['again after a savepoint in which it did was released', 'release savepoint within'],
  ])('%s: it is done', async (_, end) => {
    const s = await setup(async (tx, complete) => {
      try {
        await tx.query('savepoint within')
        await complete()
        await tx.query(end)
        await complete()
        await tx.query('savepoint another')
        await complete()
        await tx.query('commit')
      } finally {
        tx.release(true)
      }
    })
    await s.place('a', 'a')
    await s.untilDone(2)
    expect(s.ran).toEqual([1, 2])
    expect([...s.told('leaseLost'), ...s.told('retried')]).toEqual([])
    await s.end()
  })

  test('is not done before an earlier one of its key that is done otherwise', async () => {
    await using postgres = await postgresOutbox()
    const { outbox, pool } = postgres
    const seen: string[] = []
    const worker = outbox.worker([
      outbox.subscription('ordered', {
        order: 'aggregate',
        lanes: 1,
        pollMs: 20,
        on: {
          OrderPlaced: async ({ payload }, ctx) => {
            if (payload.n % 2 === 1) return
            await outbox.inTransaction(pool, (tx) => ctx.complete(tx))
            const { rows } = await pool.query<{ status: string }>(
              'select status from outbox_delivery order by id limit $1',
              [payload.n],
            )
            seen.push(...rows.map(({ status }) => status))
          },
        },
      }),
    ])
    await worker.active()
    await postgres.place('a', 'a', 'a', 'a')
    await eventually(
      'all are done, and looked at',
      async () => seen.length === 6 && (await doneOf(postgres)) === 4,
    )
    expect(seen).toEqual(seen.map(() => 'DONE'))
    await worker.stop()
  })

  test('but in one that does not see it fails like any other, instead of running again and again', async () => {
    const open: pg.PoolClient[] = []
    const s = await setup(async (tx, complete, _, completeIn) => {
      const older = open.pop()
      try {
        if (older !== undefined) await completeIn(older)
        await complete()
        await tx.query('commit')
      } finally {
        await older?.query('rollback')
        older?.release()
        tx.release()
      }
    })
    const older = await s.pool.connect()
    await older.query('begin isolation level repeatable read')
    await older.query('select') // from here on it sees what there is now
    open.push(older)
    await s.place('a', 'a')
    await s.untilDone(2)
    expect(s.ran).toEqual([1, 1, 2])
    expect(s.told('retried')).toMatchObject([{ failure: { code: 'LEASE_LOST' }, attempt: 1 }])
    await s.end()
  })

  test('and hangs with it open past its time: others are written, and it is done with the commit', async () => {
    let finish = async (): Promise<void> => undefined
    let isTimeUp = (): boolean => false
    const s = await setup(async (tx, complete, signal) => {
      isTimeUp = () => signal.aborted
      await complete()
      await new Promise<void>((resolve) => {
        finish = async () => {
          await tx.query('commit')
          tx.release()
          resolve()
        }
      })
    }, 3_000)
    await s.place('a', 'a', 'b', 'c')
    await eventually('its time is up', () => isTimeUp())
    await s.place('d')
    await s.untilDone(3)
    expect(s.ran.toSorted((a, b) => a - b)).toEqual([1, 3, 4, 5])
    await finish()
    await s.untilDone(5)
    expect(s.ran.filter((n) => n <= 2)).toEqual([1, 2])
    await eventually('it is told', () => s.told('handled').length === 5)
    expect([...s.told('leaseLost'), ...s.told('retried')]).toEqual([])
    await s.end()
  })
})
