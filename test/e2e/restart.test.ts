import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EmbeddedPostgres } from '../../src/testing/index.ts'
import {
  allDone,
  countHandled,
  createFaultDatabase,
  type FaultDatabase,
  historyOf,
  joined,
  workerOn,
} from '../support/fault-database.ts'
import { startFaultProxy } from '../support/fault-proxy.ts'
import { startOwnPostgres } from '../support/own-postgres.ts'
import { bePatient, comes } from '../support/patience.ts'
import { postgresAvailable } from '../support/servers.ts'
import { publishSteps, stepOutbox, walks } from '../support/steps.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import type { WorkerLine } from '../support/worker-config.ts'
import { WorkerProcess } from '../support/worker-process.ts'

bePatient()

const EVENTS = 1_000
const RESTARTS = 3

let server: EmbeddedPostgres

/** Crashes the server and brings it back whenever another share of the work is done. */
async function restartAgainAndAgain(database: FaultDatabase): Promise<void> {
  for (let restart = 1; restart <= RESTARTS; restart += 1) {
    const share = Math.floor((restart * EVENTS) / (RESTARTS + 1))
    await comes(`${share} are handled`, async () => (await countHandled(database)) >= share)
    await server.restart('immediate')
  }
}

/** How often each part of a worker reported an error. */
function reports(lines: readonly WorkerLine[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { during = '' } of lines) counts[during] = (counts[during] ?? 0) + 1
  return counts
}

describe.skipIf(!postgresAvailable())('when the database goes away', () => {
  beforeAll(async () => {
    server = await startOwnPostgres()
  })

  afterAll(async () => {
    await server.stop()
  })

  test('E9 U4 by crashes in mid-work, workers go on by themselves when it is back', async () => {
    await using database = await createFaultDatabase(server.url)
    await using unordered = new WorkerProcess(
      workerOn(database, 'unordered', { name: 'unordered' }, { handlers: { needsDatabase: true } }),
    )
    await using ordered = new WorkerProcess(
      workerOn(
        database,
        'ordered',
        { name: 'ordered', order: 'aggregate' },
        { handlers: { needsDatabase: true } },
      ),
    )
    const workers = [unordered, ordered]
    await Promise.all(workers.map((worker) => worker.told('started')))
    await joined(database, 'ordered')
    const pool = sturdyPool({ connectionString: server.url })
    const committed = walks(50, EVENTS / 50)

    await Promise.all([
      publishSteps(stepOutbox(pool, database.schema), pool, committed, {
        perTransaction: 10,
        onFailure: () => sleep(20),
      }),
      restartAgainAndAgain(database),
    ])
    await allDone(database, EVENTS * 2)

    expect(workers.map(({ isAlive }) => isAlive)).toEqual([true, true])
    expect(workers.flatMap((worker) => worker.of('dead'))).toEqual([])
    const histories = await Promise.all(workers.map(({ id }) => historyOf(database, committed, id)))
    expect(histories.map(({ lost, phantoms }) => [...lost, ...phantoms])).toEqual([[], []])
    expect(histories[1]?.inversions).toEqual([])
    const reported = workers.map((worker) => Object.values(reports(worker.of('error'))))
    // Once for each time it went away; a connection that was opened in its last moment may break a second time.
    expect(Math.max(...reported.flat())).toBeLessThanOrEqual(2 * RESTARTS)
    await pool.end()
  })

  test('an outage is reported once by each part of a worker, however often they try', async () => {
    await using database = await createFaultDatabase(server.url)
    await using proxy = await startFaultProxy(server.url)
    await using worker = new WorkerProcess(
      workerOn(
        database,
        'patient',
        { name: 'ordered', order: 'aggregate' },
        { url: proxy.urlOf(server.url) },
      ),
    )
    await worker.told('started')
    await joined(database, 'ordered')

    proxy.refuse()
    await comes('it has tried twenty times', () => proxy.refused >= 20)
    const during = reports(worker.of('error'))
    proxy.accept()
    const committed = walks(2, 2)
    await publishSteps(stepOutbox(database.pool, database.schema), database.pool, committed)
    await allDone(database, committed.length)

    expect(during).toMatchObject({ claim: 1, heartbeat: 1, joining: 1, recovery: 1 })
    expect(new Set(Object.values(during))).toEqual(new Set([1]))
  })
})
