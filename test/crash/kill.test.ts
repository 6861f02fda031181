import { describe, expect, test } from 'vitest'
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
import type { SubscriptionConfig } from '../support/worker-config.ts'
import { WorkerProcess } from '../support/worker-process.ts'

bePatient()

interface Kind {
  readonly title: string
  readonly subscription: SubscriptionConfig
  /** How many handlers are at work in the victim when it dies. */
  readonly running: number
  /** How many deliveries are lost to it at least, running or waiting. */
  readonly inHand: number
}

const kinds: readonly Kind[] = [
  {
    title: 'E2 E9 of an unordered subscription',
    subscription: { name: 'unordered' },
    running: 10,
    inHand: 20,
  },
  {
    title: 'E9 U4 of an ordered subscription',
    subscription: { name: 'ordered', order: 'aggregate' },
    running: 10,
    inHand: 20,
  },
  {
    title: 'E9 U1 of a subscription that runs one at a time',
    subscription: { name: 'single', oneAtATime: true },
    running: 1,
    inHand: 2,
  },
]

describe('kill -9 of a worker with deliveries in hand', () => {
  test.each(kinds)('$title: another worker finishes all of it', async ({ subscription, running, inHand }) => {
    await using database = await createFaultDatabase()
    await using victim = new WorkerProcess(
      workerOn(database, 'victim', subscription, { handlers: { hold: true } }),
    )
    await victim.told('started')
    await joined(database, subscription.name)
    const committed = walks(20, 5)
    await publishSteps(stepOutbox(database.pool, database.schema), database.pool, committed)
    await victim.told('begun', running)
    await using heir = new WorkerProcess(
      workerOn(database, 'heir', subscription, { leaseMs: LASTING_LEASE_MS }),
    )
    await heir.told('started')

    await victim.kill()

    await allDone(database, committed.length)
    const { inversions, ...rest } = await historyOf(database, committed)
    expect(rest).toEqual({ lost: [], phantoms: [], duplicates: [] })
    if (subscription.name !== 'unordered') expect(inversions).toEqual([])
    const taken = victim.of('claimed').reduce((sum, { count = 0 }) => sum + count, 0)
    expect(taken).toBeGreaterThanOrEqual(inHand)
    expect(heir.of('dead')).toEqual([])
  })
})
