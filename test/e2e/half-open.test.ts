import pg from 'pg'
import { expect, test } from 'vitest'
import { startStreamServer } from '../stream/scene.ts'
import { allDone, createFaultDatabase, historyOf, LASTING_LEASE_MS } from '../support/fault-database.ts'
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

/** Connections of a pool, those that read the log by this address. */
function logThrough(url: string): typeof pg.Client {
  return class extends pg.Client {
    constructor(config: pg.ClientConfig & { readonly replication?: string }) {
      super(config.replication === undefined ? config : { ...config, connectionString: url })
    }
  }
}

test('a reader of the log whose connection alone falls silent notices though its heartbeat goes on, and reads on by a new one', async () => {
  // It waits as long as the server does.
  await using server = await startStreamServer(18, { wal_sender_timeout: '2s' })
  await using database = await createFaultDatabase(server.url)
  await using proxy = await startFaultProxy(database.url)
  const pool = sturdyPool({
    connectionString: database.url,
    Client: logThrough(proxy.urlOf(database.url)),
  })
  const worker = stepWorker(
    stepOutbox(pool, database.schema),
    database,
    { mirror: { engine: 'stream', order: 'aggregate' } },
    { leaseMs: LASTING_LEASE_MS },
  )
  await using _worker = worker.worker
  await startAll(worker)
  await tells(worker, 'streaming')
  const committed = walks(10, 20)
  const direct = stepOutbox(database.pool, database.schema)
  await publishSteps(direct, database.pool, committed.slice(0, 100))
  await tells(worker, 'handled', 50)

  expect(proxy.silence()).toBe(1)
  await publishSteps(direct, database.pool, committed.slice(100))
  await tells(worker, 'error')
  expect(worker.of('error').map(({ error }) => String(error))).toEqual([
    expect.stringContaining('sent nothing of the log for 2 s'),
  ])
  await comes('all is handled', async () => (await historyOf(database, committed)).lost.length === 0)
  const { inversions, phantoms } = await historyOf(database, committed)
  expect({ inversions, phantoms }).toEqual({ inversions: [], phantoms: [] })
  expect(worker.of('streamGap')).toEqual([])
  await worker.worker.stop()
  await pool.end()
})
