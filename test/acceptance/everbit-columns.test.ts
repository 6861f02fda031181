import { describe, expect, test } from 'vitest'
import { type Subscription, subscription, type Transaction } from '../../src/index.ts'
import { type EverbitEvents, openEverbit, publishCommands } from './everbit-system.ts'
import { type DeliveryRow, eventually, signal } from './support.ts'

/** Fails at first, and then waits until it is released. Writes its attempts down. */
function failingOnce(
  order: 'none' | 'aggregate',
  attempts: number[],
  released: Promise<void>,
): Subscription<EverbitEvents, Transaction> {
  return subscription('order-executor', {
    order,
    maxAttempts: 7,
    retry: { delayMs: () => 60_000 },
    on: {
      CreateOrderAttempt: async (_event, ctx) => {
        attempts.push(ctx.attempt)
        if (ctx.attempt === 1) throw Object.assign(new Error('upstream is away'), { code: 'ECONNRESET' })
        await released
      },
    },
  })
}

const timeOf = (date: Date | null | undefined): number => date?.getTime() ?? Number.NaN

function expectWaitingForRetry(row: DeliveryRow | undefined): void {
  expect(row).toMatchObject({
    status: 'PENDING',
    attempt_count: 1,
    max_attempts: 7,
    last_error_code: 'ECONNRESET',
    last_error_message: expect.stringContaining('upstream is away'),
    locked_by: null,
    locked_until: null,
    processed_at: null,
  })
  expect(timeOf(row?.last_attempt_at)).toBeGreaterThanOrEqual(timeOf(row?.created_at))
  expect(timeOf(row?.next_retry_at)).toBeGreaterThan(timeOf(row?.last_attempt_at) + 59_000)
}

function expectRunning(row: DeliveryRow | undefined, worker: string): void {
  expect(row).toMatchObject({ attempt_count: 2, locked_by: worker, next_retry_at: null })
  expect(timeOf(row?.locked_until)).toBeGreaterThan(timeOf(row?.last_attempt_at))
}

function expectDone(row: DeliveryRow | undefined): void {
  expect(row).toMatchObject({ attempt_count: 2, locked_by: null, locked_until: null })
  expect(row?.processed_at).toBeInstanceOf(Date)
  expect(timeOf(row?.updated_at)).toBeGreaterThanOrEqual(timeOf(row?.created_at))
}

describe('columns of everbit', () => {
  test('E3 the state of retries lives in columns', async () => {
    await using everbit = await openEverbit()
    const columns = await everbit.rows<{ column_name: string; data_type: string }>(
      `select column_name, data_type from information_schema.columns
        where table_schema = $1 and table_name = 'outbox_delivery'`,
      [everbit.schema],
    )
    const typeOf = Object.fromEntries(columns.map((column) => [column.column_name, column.data_type]))
    expect(typeOf).toMatchObject({
      status: 'text',
      attempt_count: 'integer',
      max_attempts: 'integer',
      next_retry_at: 'timestamp with time zone',
      last_attempt_at: 'timestamp with time zone',
      locked_by: 'text',
      locked_until: 'timestamp with time zone',
      last_error_code: 'text',
      last_error_message: 'text',
      created_at: 'timestamp with time zone',
      updated_at: 'timestamp with time zone',
      processed_at: 'timestamp with time zone',
    })
  })

  test.each(['none', 'aggregate'] as const)(
    'E3 each column tells what has happened so far, and a restarted worker goes on from there (order: %s)',
    async (order) => {
      await using everbit = await openEverbit()
      const attempts: number[] = []
      const released = signal()
      const failing = () => failingOnce(order, attempts, released.happened)
      const first = await everbit.run([failing()])
      const [eventId = ''] = await publishCommands(everbit, 1)
      await eventually('the first attempt has failed', () => everbit.toldOf('retried').length === 1)
      await first.stop()
      expectWaitingForRetry(await everbit.delivery(eventId))

      const options = { workerId: 'order-executor-worker', leaseMs: 30_000 }
      await everbit.runElsewhere([failing()], options)
      await everbit.passRetryDelays()
      await everbit.untilStatus(eventId, 'PROCESSING')
      expectRunning(await everbit.delivery(eventId), 'order-executor-worker')

      released.happen()
      await everbit.untilStatus(eventId, 'DONE')
      expectDone(await everbit.delivery(eventId))
      expect(attempts).toEqual([1, 2])
    },
  )
})
