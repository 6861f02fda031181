import { expect, test } from 'vitest'
import {
  allDone,
  createFaultDatabase,
  historyOf,
  joined,
  LASTING_LEASE_MS,
  workerOn,
} from '../support/fault-database.ts'
import { bePatient } from '../support/patience.ts'
import { publishSteps, stepOutbox, walks } from '../support/steps.ts'
import { WorkerProcess } from '../support/worker-process.ts'

bePatient()

test('in a rolling deploy the old code leaves events it does not know to the new code', async () => {
  await using database = await createFaultDatabase()
  const subscription = { name: 'walkers', concurrency: 2, batchSize: 4 }
  const leaseMs = LASTING_LEASE_MS
  await using old = new WorkerProcess(workerOn(database, 'old', subscription, { leaseMs, code: 'old' }))
  await old.told('started')
  await joined(database, subscription.name)
  // It holds what it takes first, so that the old code gets its share of everything.
  await using young = new WorkerProcess(
    workerOn(database, 'young', subscription, { leaseMs, handlers: { hold: true } }),
  )
  await young.told('started')
  await joined(database, subscription.name)
  const [known, unknown] = [walks(10, 10), walks(20, 10)]
  const outbox = stepOutbox(database.pool, database.schema)
  for (let n = 0; n < 10; n += 1) {
    await publishSteps(outbox, database.pool, known.slice(n * 10, (n + 1) * 10))
    await publishSteps(outbox, database.pool, unknown.slice(n * 20, (n + 1) * 20), { type: 'StepRetraced' })
  }
  await old.told('released', 10)
  young.go()
  await young.told('handled')

  // The deploy goes on: what the old code postponed is for the new code now.
  old.signal('SIGTERM')
  expect(await old.ended).toEqual({ code: 0, signal: null })
  await allDone(database, known.length + unknown.length)

  expect([...old.of('dead'), ...young.of('dead')]).toEqual([])
  const unknownIds = new Set(unknown.map(({ eventId }) => eventId))
  const postponed = old.of('released').filter(({ why }) => why === 'postponed')
  expect(postponed.every(({ eventId = '' }) => unknownIds.has(eventId))).toBe(true)
  expect(postponed.length).toBeGreaterThanOrEqual(10)
  expect(old.of('handled').filter(({ eventId = '' }) => unknownIds.has(eventId))).toEqual([])
  const { inversions: _, ...rest } = await historyOf(database, [...known, ...unknown])
  expect(rest).toEqual({ lost: [], phantoms: [], duplicates: [] })
})
