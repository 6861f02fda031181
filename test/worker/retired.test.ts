import { expect, test } from 'vitest'
import type { WorkerEvent } from '../../src/observe/worker-events.ts'
import { subscription } from '../../src/worker/subscription.ts'
import { eventually } from '../support/program.ts'
import { advanceUntil, memoryOutbox } from './memory-outbox.ts'
import { postgresOutbox, type shopEvents } from './postgres-outbox.ts'

const toldOf = (observed: readonly WorkerEvent[]): readonly WorkerEvent[] =>
  observed.filter(({ kind }) => kind === 'retired')

test('a worker whose subscription is retired by force says so once, and goes on with the others', async () => {
  await using postgres = await postgresOutbox()
  const { outbox, place } = postgres
  const observed: WorkerEvent[] = []
  const handled = { old: 0, kept: 0 }
  const counting = (name: keyof typeof handled) =>
    subscription<typeof shopEvents, object>(name, {
      pollMs: 20,
      on: {
        OrderPlaced: () => {
          handled[name] += 1
        },
      },
    })
  await using worker = outbox.worker([counting('old'), counting('kept')], {
    housekeepingMs: 20,
    observers: [(event) => void observed.push(event)],
  })
  await worker.active()
  await place('a')
  await eventually('both have it', async () =>
    (await outbox.status()).every(({ counts }) => counts.DONE === 1),
  )

  await outbox.retire('old', { operator: 'kim', force: true })

  await eventually('it is told', () => toldOf(observed).length > 0)
  for (const count of [2, 3, 4]) {
    await place('b')
    await eventually('the other one has it', () => handled.kept === count)
  }
  expect(toldOf(observed)).toEqual([{ kind: 'retired', subscription: 'old', retiredBy: 'kim' }])
  expect(handled.old).toBe(1)
  expect(observed.filter(({ kind }) => kind === 'error')).toEqual([])
})

test('and claims no more of it', async () => {
  const { clock, outbox, stores } = memoryOutbox()
  const observed: WorkerEvent[] = []
  const things = outbox.subscription('things', { on: { ThingHappened: async () => {} } })
  const worker = outbox.worker([things], { observers: [(event) => void observed.push(event)] })
  await worker.start()
  const [store] = stores
  if (store === undefined) throw new Error('no store was opened')
  store.retiredBy = 'kim'
  await advanceUntil(clock, () => toldOf(observed).length > 0)
  store.calls.splice(0)
  await clock.advance(30_000)
  expect(store.calls).toContain('heartbeat')
  expect(store.calls).not.toContain('claim')
  await Promise.all([worker.stop(), clock.advance(100)])
})
