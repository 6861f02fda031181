import { expect, test } from 'vitest'
import { createOutbox } from '../../src/outbox.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { eventually } from '../support/program.ts'
import { postgresOutbox, shopEvents } from './postgres-outbox.ts'

test('a suspect is charged for a crash only if no handler that was given up still runs beside it', async () => {
  await using postgres = await postgresOutbox()
  const { pool, store, place } = postgres
  const outbox = createOutbox({ store, events: shopEvents, clock: { ...systemClock } })
  const goOn = new Map<string, () => void>()
  const begins = (aggregateId: string): Promise<void> =>
    eventually(`${aggregateId} runs`, () => goOn.has(aggregateId))
  const worker = outbox.worker(
    [
      outbox.subscription('sub', {
        maxAttempts: 1,
        pollMs: 20,
        timeoutMs: 5_000,
        on: {
          OrderPlaced: ({ aggregateId }) =>
            new Promise<void>((resolve) => {
              goOn.set(aggregateId, resolve)
            }),
        },
      }),
    ],
    { housekeepingMs: 20, listen: false },
  )
  await worker.active()
  const suspect = async (aggregateId: string): Promise<boolean> => {
    await pool.query(`update outbox_subscription set paused_at = now(), paused_by = 'test'`)
    await place(aggregateId)
    await pool.query(`
      update outbox_delivery set fresh = false, held = true, suspect = true, next_retry_at = now() where status = 'PENDING';
      update outbox_subscription set paused_at = null, paused_by = null`)
    await begins(aggregateId)
    const { rows } = await pool.query<{ suspect: boolean }>(
      `select suspect from outbox_delivery where status = 'PROCESSING'`,
    )
    expect(rows).toHaveLength(1)
    goOn.get(aggregateId)?.()
    await eventually('it is done', async () => {
      const { rowCount } = await pool.query(`select from outbox_delivery where status = 'PROCESSING'`)
      return rowCount === 0
    })
    return rows[0]?.suspect ?? false
  }

  expect(await suspect('alone'), 'the crash would be its own').toBe(true)
  await place('stray')
  await begins('stray')
  await eventually('it is given up', async () => {
    const { rowCount } = await pool.query(`select from outbox_delivery where status = 'DEAD'`)
    return rowCount === 1
  })
  expect(await suspect('beside the stray'), 'whose crash it would be nobody knows').toBe(false)
  goOn.get('stray')?.()
  expect(await suspect('alone again'), 'the stray came back').toBe(true)
  await worker.stop()
})
