import { expect, test } from 'vitest'
import { countStates, createFaultDatabase, joined } from '../support/fault-database.ts'
import { bePatient, comes } from '../support/patience.ts'
import { type PoisonedSubscription, supervisePoisoned } from '../support/poisoned-process.ts'
import { publishSteps, stepOutbox, walks } from '../support/steps.ts'

bePatient()

const MAX_ATTEMPTS = 2

test('E12 an event that kills its process is found out although another subscription of the worker has suspects too', async () => {
  await using database = await createFaultDatabase()
  const shared = { maxAttempts: MAX_ATTEMPTS, takesMs: 50 }
  const busy: PoisonedSubscription = { ...shared, name: 'busy', type: 'StepTaken' }
  const deadly: PoisonedSubscription = { ...shared, name: 'deadly', type: 'StepRetraced' }
  await using supervisor = supervisePoisoned(database, [[busy, deadly]])
  await joined(database, busy.name)
  await joined(database, deadly.name)
  const outbox = stepOutbox(database.pool, database.schema)
  await publishSteps(outbox, database.pool, walks(100, 40), { perTransaction: 1_000 })
  const others = walks(60, 1)
  const poison = others[0]?.eventId ?? ''
  await publishSteps(outbox, database.pool, others, { type: 'StepRetraced', poison })
  // Once among others, again in each group of suspects, of which every next one is half as large at most, and alone.
  const mostDeaths = 1 + Math.ceil(Math.log2(others.length)) + MAX_ATTEMPTS

  await comes('it is found out, or has killed too many', async () => {
    return (await outbox.deadLetters.list()).length > 0 || supervisor.deaths > mostDeaths
  })

  const letters = await outbox.deadLetters.list()
  expect(letters.map(({ eventId, errorCode }) => ({ eventId, errorCode }))).toEqual([
    { eventId: poison, errorCode: 'CRASHED' },
  ])
})

test('E12 an event that kills its process takes no innocent one of another worker of the process with it', async () => {
  await using database = await createFaultDatabase()
  const shared = { maxAttempts: MAX_ATTEMPTS }
  const deadly: PoisonedSubscription = { ...shared, name: 'deadly', type: 'StepRetraced', takesMs: 700 }
  const innocent: PoisonedSubscription = { ...shared, name: 'innocent', type: 'StepTaken', takesMs: 2_000 }
  await using _ = supervisePoisoned(database, [[deadly], [innocent]])
  await joined(database, deadly.name)
  await joined(database, innocent.name)
  const outbox = stepOutbox(database.pool, database.schema)
  const [killer] = walks(1, 1)
  await publishSteps(outbox, database.pool, walks(1, 1))
  await publishSteps(outbox, database.pool, killer === undefined ? [] : [killer], {
    type: 'StepRetraced',
    poison: killer?.eventId ?? '',
  })

  await comes('both have ended', async () => {
    const { DONE = 0, DEAD = 0 } = await countStates(database)
    return DONE + DEAD === 2
  })

  const letters = await outbox.deadLetters.list()
  expect(letters.map(({ subscription, errorCode }) => ({ subscription, errorCode }))).toEqual([
    { subscription: 'deadly', errorCode: 'CRASHED' },
  ])
})
