import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EmbeddedPostgres } from '../../src/testing/index.ts'
import {
  allDone,
  countHandled,
  createFaultDatabase,
  type FaultDatabase,
  historyOf,
  WITNESS,
} from '../support/fault-database.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { startOwnPostgres } from '../support/own-postgres.ts'
import { bePatient, comes } from '../support/patience.ts'
import { postgresAvailable } from '../support/servers.ts'
import { type StepWorker, startAll, stepWorker } from '../support/step-worker.ts'
import { publishSteps, stepOutbox, walks } from '../support/steps.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'

bePatient()

const EVENTS = 2_000
const FAULTS = 10

let server: EmbeddedPostgres

async function terminateBackends({ pool }: FaultDatabase): Promise<void> {
  await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where backend_type = 'client backend' and application_name <> $1`,
    [WITNESS],
  )
}

/** Breaks all connections whenever another share of the work is done: at the socket and by the server, in turn. */
async function breakConnections(database: FaultDatabase, proxy: FaultProxy): Promise<void> {
  for (let fault = 1; fault <= FAULTS; fault += 1) {
    const share = Math.floor((fault * EVENTS) / (FAULTS + 2))
    await comes(`${share} are handled`, async () => (await countHandled(database)) >= share)
    if (fault % 2 === 0) proxy.cut()
    else await terminateBackends(database)
  }
}

/** Leases that ran out because of a fault: whoever held them may have done the work before. */
function lapsed(workers: readonly StepWorker[]): number {
  return workers.reduce(
    (sum, worker) =>
      sum +
      worker.of('leaseLost').length +
      worker.of('claimed').reduce((all, { suspects }) => all + suspects, 0),
    0,
  )
}

describe.skipIf(!postgresAvailable())('while connections are cut again and again', () => {
  beforeAll(async () => {
    server = await startOwnPostgres()
  })

  afterAll(async () => {
    await server.stop()
  })

  test.each([
    { title: 'E2 of an unordered subscription', name: 'unordered', subscription: {} },
    { title: 'E2 U4 of an ordered subscription', name: 'ordered', subscription: { order: 'aggregate' } },
  ] as const)(
    '$title: 2,000 events are published and handled, and none is lost',
    async ({ name, subscription }) => {
      await using database = await createFaultDatabase(server.url)
      await using proxy = await startFaultProxy(server.url)
      const pool = sturdyPool({ connectionString: proxy.urlOf(server.url), max: 10 })
      const outbox = stepOutbox(pool, database.schema)
      const work = { [name]: { ...subscription, pollMs: 50 } }
      const workers = ['one', 'two'].map((workerId) => stepWorker(outbox, database, work, { workerId }))
      await startAll(...workers)
      const committed = walks(50, EVENTS / 50)
      let failures = 0

      await Promise.all([
        publishSteps(outbox, pool, committed, {
          perTransaction: 10,
          onFailure: () => {
            failures += 1
          },
        }),
        breakConnections(database, proxy),
      ])
      await allDone(database, EVENTS)

      const { inversions, duplicates, ...rest } = await historyOf(database, committed)
      expect(rest).toEqual({ lost: [], phantoms: [] })
      if (name === 'ordered') expect(inversions).toEqual([])
      expect(duplicates.length).toBeLessThanOrEqual(lapsed(workers))
      expect(failures + workers.reduce((sum, worker) => sum + worker.of('error').length, 0)).toBeGreaterThan(
        0,
      )
      expect(workers.flatMap((worker) => worker.of('dead'))).toEqual([])
      await Promise.all(workers.map(({ worker }) => worker.stop()))
      await pool.end()
    },
  )
})
