import { describe, expect, test } from 'vitest'
import type { Transaction } from '../../src/index.ts'
import { NonRetryableError, type Subscription, subscription } from '../../src/index.ts'
import { type EverbitEvents, openEverbit } from './everbit-system.ts'
import { eventually, rejection, type System, signal } from './support.ts'

type Everbit = System<EverbitEvents>
type Status = 'PENDING' | 'PROCESSING' | 'DONE' | 'DEAD'

const STATUSES: readonly Status[] = ['PENDING', 'PROCESSING', 'DONE', 'DEAD']

/** Everything a row needs to be in a status, so that only the state machine can be what refuses it. */
const COLUMNS: Readonly<Record<Status, string>> = {
  PENDING: `status = 'PENDING', fresh = true, held = false, next_retry_at = null, processed_at = null,
            locked_by = null, locked_until = null, lease_token = null`,
  PROCESSING: `status = 'PROCESSING', fresh = false, held = false, next_retry_at = null, processed_at = null,
               locked_by = 'somebody', locked_until = now() + interval '1 hour', lease_token = 1`,
  DONE: `status = 'DONE', fresh = false, held = false, next_retry_at = null, processed_at = now(),
         locked_by = null, locked_until = null, lease_token = null`,
  DEAD: `status = 'DEAD', fresh = false, held = false, next_retry_at = null, processed_at = null, last_error_code = 'BY_HAND',
         locked_by = null, locked_until = null, lease_token = null`,
}

const backtest = (jobId: string) => ({ aggregateId: jobId, payload: { jobId } })

/** A backtest worker that does as the job's name says. */
function backtestWorker(
  runs: string[],
  never: Promise<void> = Promise.resolve(),
): Subscription<EverbitEvents, Transaction> {
  return subscription('backtest', {
    maxAttempts: 3,
    retry: { delayMs: () => 0 },
    pollMs: 20,
    on: {
      RunBacktest: async (event) => {
        runs.push(event.aggregateId)
        if (event.aggregateId.startsWith('hangs')) await never
        if (event.aggregateId.startsWith('fails')) throw new Error('the candles could not be read')
        if (event.aggregateId.startsWith('refused')) throw new NonRetryableError('no such strategy')
      },
    },
  })
}

/** One delivery in each status, by the daily way. */
async function oneOfEach(everbit: Everbit, never: Promise<void>): Promise<Record<Status, string>> {
  const worker = await everbit.run([backtestWorker([], never)])
  const DONE = await everbit.publish('RunBacktest', backtest('succeeds'))
  const DEAD = await everbit.publish('RunBacktest', backtest('refused'))
  const PROCESSING = await everbit.publish('RunBacktest', backtest('hangs'))
  await everbit.untilStatus(DONE, 'DONE')
  await everbit.untilStatus(DEAD, 'DEAD')
  await everbit.untilStatus(PROCESSING, 'PROCESSING')
  await everbit.outbox.pause('backtest', { operator: 'test' })
  const PENDING = await everbit.publish('RunBacktest', backtest('waits'))
  expect(worker.id).not.toBe('')
  return { PENDING, PROCESSING, DONE, DEAD }
}

describe('the state machine of everbit', () => {
  test('E6 an event goes PENDING, PROCESSING, DONE; or back to PENDING after a failure; or to DEAD', async () => {
    await using everbit = await openEverbit()
    const seen: string[] = []
    const statusOf = async (eventId: string): Promise<string | undefined> =>
      (await everbit.delivery(eventId))?.status
    await everbit.run([
      subscription('backtest', {
        maxAttempts: 3,
        retry: { delayMs: () => 600_000 },
        on: {
          RunBacktest: async (event, ctx) => {
            seen.push(`${event.aggregateId} ${ctx.attempt} ${await statusOf(event.eventId)}`)
            if (event.aggregateId === 'dies' || ctx.attempt === 1) throw new Error('again')
          },
        },
      }),
    ])
    const recovers = await everbit.publish('RunBacktest', backtest('recovers'))
    const dies = await everbit.publish('RunBacktest', backtest('dies'))
    for (const failures of [2, 3]) {
      await eventually('both attempts are over', () => everbit.toldOf('retried').length === failures)
      if (failures === 2) expect(await statusOf(recovers)).toBe('PENDING')
      expect(await statusOf(dies)).toBe('PENDING')
      await everbit.passRetryDelays()
    }
    await everbit.untilSettled()
    expect(await statusOf(recovers)).toBe('DONE')
    expect(await statusOf(dies)).toBe('DEAD')
    expect(seen.toSorted()).toEqual([
      'dies 1 PROCESSING',
      'dies 2 PROCESSING',
      'dies 3 PROCESSING',
      'recovers 1 PROCESSING',
      'recovers 2 PROCESSING',
    ])
  })

  test('E6 stale PROCESSING goes back to PENDING before it is taken again', async () => {
    await using everbit = await openEverbit()
    const runs: string[] = []
    await (await everbit.run([backtestWorker(runs)])).stop()
    const eventId = await everbit.publish('RunBacktest', backtest('job'))
    await everbit.claimAndVanish('backtest', { leaseMs: 100 })
    await everbit.outbox.pause('backtest', { operator: 'test' })
    await everbit.run([backtestWorker(runs)])
    await everbit.untilStatus(eventId, 'PENDING')
    expect(runs).toEqual([])
    await everbit.outbox.resume('backtest', { operator: 'test' })
    await everbit.untilStatus(eventId, 'DONE')
    expect(runs).toEqual(['job'])
  })

  test('E6 no other transition is possible, whatever the caller writes', async () => {
    await using everbit = await openEverbit()
    const end = signal()
    const ids = await oneOfEach(everbit, end.happened)
    const allowed = new Set([
      'PENDING PROCESSING',
      'PROCESSING PENDING',
      'PROCESSING DONE',
      'PROCESSING DEAD',
    ])
    const moves = STATUSES.flatMap((from) =>
      STATUSES.filter((to) => to !== from).map((to) => [from, to] as const),
    )
    const refused: string[] = []
    for (const [from, to] of moves) {
      if (allowed.has(`${from} ${to}`)) continue
      const sql = `update outbox_delivery set ${COLUMNS[to]} where event_id = $1`
      const error = await rejection(everbit.pool.query(sql, [ids[from]]))
      expect(error.message).toContain(`a delivery cannot go from ${from} to ${to}`)
      expect((await everbit.delivery(ids[from]))?.status).toBe(from)
      refused.push(`${from} ${to}`)
    }
    expect(refused).toHaveLength(8)
    end.happen()
  })

  test('E6 DONE is never reset, and a replay is a new subscription', async () => {
    await using everbit = await openEverbit()
    const runs: string[] = []
    await everbit.run([backtestWorker(runs)])
    const eventId = await everbit.publish('RunBacktest', backtest('job'))
    await everbit.untilStatus(eventId, 'DONE')
    const reset = (set: string): Promise<unknown> =>
      everbit.pool.query(`update outbox_delivery set ${set} where event_id = $1`, [eventId])
    await expect(reset(COLUMNS.PENDING)).rejects.toThrow('a delivery cannot go from DONE to PENDING')
    await expect(reset(COLUMNS.PROCESSING)).rejects.toThrow('a delivery cannot go from DONE to PROCESSING')
    const replayed: string[] = []
    await everbit.run([
      subscription('backtest-replay', {
        startFrom: 'beginning',
        on: { RunBacktest: (event) => void replayed.push(event.eventId) },
      }),
    ])
    await everbit.untilStatus(eventId, 'DONE', 'backtest-replay')
    expect(replayed).toEqual([eventId])
    expect(runs).toEqual(['job'])
  })

  test('E6 a delivery that is not DONE cannot be removed', async () => {
    await using everbit = await openEverbit()
    const end = signal()
    const ids = await oneOfEach(everbit, end.happened)
    for (const status of ['PENDING', 'PROCESSING', 'DEAD'] as const) {
      const removal = everbit.pool.query('delete from outbox_delivery where event_id = $1', [ids[status]])
      await expect(removal).rejects.toThrow('cannot be removed')
    }
    await expect(everbit.pool.query('truncate outbox_delivery')).rejects.toThrow('cannot be removed')
    expect(await everbit.count('outbox_delivery')).toBe(4)
    end.happen()
  })
})

describe('dead letters of everbit', () => {
  test('E12 the last attempt that fails makes it DEAD, and nothing runs it again by itself', async () => {
    await using everbit = await openEverbit()
    const runs: string[] = []
    const first = await everbit.run([backtestWorker(runs)])
    const eventId = await everbit.publish('RunBacktest', backtest('fails'))
    await everbit.untilStatus(eventId, 'DEAD')
    expect(runs).toEqual(['fails', 'fails', 'fails'])
    expect(await everbit.delivery(eventId)).toMatchObject({ attempt_count: 3, max_attempts: 3 })
    await first.stop()
    // Neither housekeeping, nor a restart, nor a subscription with more attempts, nor other events move it.
    await everbit.run([
      { ...backtestWorker(runs), options: { ...backtestWorker(runs).options, maxAttempts: 50 } },
    ])
    await everbit.passRetryDelays()
    for (const job of ['after-1', 'after-2', 'after-3']) {
      await everbit.untilStatus(await everbit.publish('RunBacktest', backtest(job)), 'DONE')
    }
    expect(runs).toEqual(['fails', 'fails', 'fails', 'after-1', 'after-2', 'after-3'])
    expect((await everbit.delivery(eventId))?.status).toBe('DEAD')
    expect(await everbit.outbox.deadLetters.list()).toMatchObject([{ eventId, resolved: false }])
  })

  test('E12 an operator re-drives with the SQL function: PENDING, attempts 0, now', async () => {
    await using everbit = await openEverbit()
    const runs: string[] = []
    const worker = await everbit.run([backtestWorker(runs)])
    const eventId = await everbit.publish('RunBacktest', backtest('refused'))
    await everbit.untilStatus(eventId, 'DEAD')
    await worker.stop()
    const [letter] = await everbit.outbox.deadLetters.list()
    await everbit.pool.query('select outbox_retry($1, $2, $3)', [letter?.id, 'han', 'the strategy was added'])
    const row = await everbit.delivery(eventId)
    expect(row).toMatchObject({ status: 'PENDING', attempt_count: 0, locked_by: null })
    expect(
      await everbit.value<boolean>('select next_retry_at <= clock_timestamp() from outbox_delivery'),
    ).toBe(true)
    await everbit.run([
      subscription('backtest', {
        on: { RunBacktest: (event) => void runs.push(`again ${event.aggregateId}`) },
      }),
    ])
    await everbit.untilStatus(eventId, 'DONE')
    expect(runs).toEqual(['refused', 'again refused'])
  })

  test('E12 an operator re-drives with the library, by name', async () => {
    await using everbit = await openEverbit()
    const { deadLetters } = everbit.outbox
    let isRepaired = false
    await everbit.run([
      subscription('backtest', {
        on: {
          RunBacktest: () => {
            if (!isRepaired) throw new NonRetryableError('no such strategy')
          },
        },
      }),
    ])
    const eventId = await everbit.publish('RunBacktest', backtest('job'))
    await everbit.untilStatus(eventId, 'DEAD')
    const [letter] = await deadLetters.list()
    await expect(deadLetters.retry(letter?.id ?? '', { operator: '' })).rejects.toThrow('operator')
    isRepaired = true
    await deadLetters.retry(letter?.id ?? '', { operator: 'han', note: 'strategy added' })
    await everbit.untilStatus(eventId, 'DONE')
    expect(await everbit.delivery(eventId)).toMatchObject({ attempt_count: 1 })
  })

  test('E12 an operator may leave it dead for ever, and it is kept', async () => {
    await using everbit = await openEverbit()
    const { deadLetters } = everbit.outbox
    const runs: string[] = []
    await everbit.run([backtestWorker(runs)])
    const eventId = await everbit.publish('RunBacktest', backtest('refused'))
    await everbit.untilStatus(eventId, 'DEAD')
    const [letter] = await deadLetters.list()
    await deadLetters.resolve(letter?.id ?? '', { operator: 'han', note: 'kept for the analysis' })
    await everbit.untilStatus(await everbit.publish('RunBacktest', backtest('next')), 'DONE')
    expect(runs).toEqual(['refused', 'next'])
    expect((await everbit.delivery(eventId))?.status).toBe('DEAD')
    expect(await deadLetters.show(letter?.id ?? '')).toMatchObject({
      eventId,
      resolved: true,
      payload: { jobId: 'refused' },
    })
  })
})
