import { expect, test } from 'vitest'
import {
  buryWorker,
  countStates,
  createFaultDatabase,
  historyOf,
  joined,
  workerOn,
} from '../support/fault-database.ts'
import { bePatient, comes } from '../support/patience.ts'
import { publishSteps, stepOutbox, walks } from '../support/steps.ts'
import { Supervisor } from '../support/supervisor.ts'
import type { SubscriptionConfig } from '../support/worker-config.ts'
import { WorkerProcess } from '../support/worker-process.ts'

bePatient()

const subscriptions: readonly SubscriptionConfig[] = [
  { name: 'unordered', maxAttempts: 2 },
  { name: 'ordered', order: 'aggregate', onDead: 'continue', maxAttempts: 2 },
]

test.each(subscriptions)(
  'E12 an event that kills its process ends as a dead letter, and no innocent one with it ($name)',
  async (subscription) => {
    await using database = await createFaultDatabase()
    await using supervisor = new Supervisor(
      (life) =>
        new WorkerProcess(
          workerOn(database, `life-${life}`, subscription, {
            handlers: { obeysPoison: true, takesMs: 10 },
            leaseMs: 60_000,
          }),
        ),
      (life) => buryWorker(database, `life-${life}`),
    )
    await supervisor.process.told('started')
    await joined(database, subscription.name)
    const all = walks(10, 6)
    const poison = all[25]?.eventId ?? ''
    const innocents = all.filter(({ eventId }) => eventId !== poison)
    const outbox = stepOutbox(database.pool, database.schema)
    await publishSteps(outbox, database.pool, all, { poison })

    await comes('the poison is dead and all others are done', async () => {
      const { DONE = 0, DEAD = 0, ...rest } = await countStates(database)
      return DONE === innocents.length && DEAD === 1 && Object.keys(rest).length === 0
    })

    const letters = await outbox.deadLetters.list()
    expect(letters.map(({ eventId, errorCode }) => ({ eventId, errorCode }))).toEqual([
      { eventId: poison, errorCode: 'CRASHED' },
    ])
    // Once among others, when nobody can tell whose fault it was; again in each group of suspects, of which every next one
    // is half as large at most; and then once per attempt, alone.
    expect(supervisor.deaths).toBeGreaterThanOrEqual(3)
    expect(supervisor.deaths).toBeLessThanOrEqual(1 + Math.ceil(Math.log2(all.length)) + 2)
    const { lost, phantoms, inversions } = await historyOf(database, innocents)
    expect({ lost, phantoms }).toEqual({ lost: [], phantoms: [] })
    if (subscription.order !== undefined) expect(inversions).toEqual([])
  },
)
