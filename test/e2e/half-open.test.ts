import { expect, test } from 'vitest'
import { allDone, createFaultDatabase, historyOf } from '../support/fault-database.ts'
import { startFaultProxy } from '../support/fault-proxy.ts'
import { bePatient, comes } from '../support/patience.ts'
import { startAll, stepWorker, tells } from '../support/step-worker.ts'
import { publishSteps, stepOutbox, walks } from '../support/steps.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'

bePatient()

test.each([
  { name: 'unordered', subscription: {} },
  { name: 'ordered', subscription: { order: 'aggregate' } },
] as const)(
  'a worker whose connections fall silent without closing notices, and goes on by new ones ($name)',
  async ({ name, subscription }) => {
    await using database = await createFaultDatabase()
    await using proxy = await startFaultProxy(database.url)
    const pool = sturdyPool({
      connectionString: proxy.urlOf(database.url),
      query_timeout: 500,
      connectionTimeoutMillis: 500,
    })
    const worker = stepWorker(stepOutbox(pool, database.schema), database, {
      [name]: { ...subscription, pollMs: 50 },
    })
    await using _worker = worker.worker
    // With so little patience even a slow answer is none: it may be started again.
    await comes('it starts', () =>
      startAll(worker).then(
        () => true,
        () => false,
      ),
    )
    const committed = walks(10, 20)
    const direct = stepOutbox(database.pool, database.schema)
    await publishSteps(direct, database.pool, committed.slice(0, 100))
    await tells(worker, 'handled', 50)

    expect(proxy.silence()).toBeGreaterThan(0)
    await publishSteps(direct, database.pool, committed.slice(100))
    await tells(worker, 'error')
    await allDone(database, committed.length)

    const { inversions, lost, phantoms } = await historyOf(database, committed)
    expect({ lost, phantoms }).toEqual({ lost: [], phantoms: [] })
    if (name === 'ordered') expect(inversions).toEqual([])
    await worker.worker.stop()
    await pool.end()
  },
)
