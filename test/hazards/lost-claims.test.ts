import pg from 'pg'
import { expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../src/delivery/delivery.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import type { WorkerStore } from '../../src/store/store.ts'
import type { RegisteredSubscription } from '../../src/store/subscription-store.ts'
import type { EmbeddedPostgres } from '../../src/testing/index.ts'
import { claim, DONE, join, settled } from '../store/contract/helpers.ts'
import { installTables } from '../support/install-tables.ts'
import { startOwnPostgres } from '../support/own-postgres.ts'
import { bePatient } from '../support/patience.ts'
import { postgresAvailable } from '../support/servers.ts'
import { FORGETFUL, holdWalWriter } from '../support/wal-writer.ts'
import { publish } from './support.ts'

bePatient()

const SCHEMA = 'own'
/** What a session claims before its claims stop waiting for the disk. */
const DURABLE = 50
/** More than the server numbers ahead in its log, so that some of the numbers are undone with it. */
const LATER = 40

/** A server that forces nothing to disk by itself, and on which nothing else goes on. */
async function openServer() {
  const server: EmbeddedPostgres = await startOwnPostgres({ settings: FORGETFUL })
  const url = new URL(server.url)
  url.searchParams.set('options', `-c search_path=${SCHEMA}`)
  const pool = new pg.Pool({ connectionString: url.href })
  pool.on('error', () => undefined)
  await installTables(pool, SCHEMA)
  // A clock that stands still moves no low-water bound on, which would wait for the disk.
  const store = postgresStore({ pool, schema: SCHEMA, clock: new ManualClock() })
  const workers: WorkerStore[] = []
  return {
    server,
    pool,
    openWorker: (): WorkerStore => {
      const worker = store.openWorker()
      workers.push(worker)
      return worker
    },
    [Symbol.asyncDispose]: async () => {
      for (const worker of workers) await worker.close()
      await pool.end()
      await server.stop('immediate')
    },
  }
}

async function claimOneByOne(
  store: WorkerStore,
  subscription: RegisteredSubscription,
  workerId: string,
  times: number,
): Promise<readonly ClaimedDelivery[]> {
  const claimed: ClaimedDelivery[] = []
  for (let n = 0; n < times; n += 1) claimed.push(...(await claim(store, subscription, workerId, 1)))
  return claimed
}

const tokensOf = (deliveries: readonly ClaimedDelivery[]): readonly string[] =>
  deliveries.map(({ lease }) => lease.token)

test.skipIf(!postgresAvailable())(
  'claims that a crash of the server undoes are made again, under tokens that nobody has, and are charged then',
  async () => {
    await using scene = await openServer()
    const { server, pool } = scene
    const first = scene.openWorker()
    const subscription = await join(first)
    await publish(
      pool,
      Array.from({ length: DURABLE + LATER }, (_, n) => `k${n}`),
    )
    const durable = await claimOneByOne(first, subscription, 'w1', DURABLE)
    const walWriter = await holdWalWriter(pool)
    const later = await claimOneByOne(first, subscription, 'w1', LATER)
    expect(later).toHaveLength(LATER)
    const restarted = server.restart('immediate')
    walWriter.kill()
    await restarted

    const leasedTo = async (worker: string): Promise<readonly string[]> => {
      const { rows } = await pool.query<{ id: string }>(
        `select id from outbox_delivery where locked_by = $1 and attempt_count = 1 order by id`,
        [worker],
      )
      return rows.map(({ id }) => id)
    }
    const kept = await leasedTo('w1')
    expect(kept).toEqual(expect.arrayContaining(durable.map(({ position }) => position)))

    const second = scene.openWorker()
    const again = await claimOneByOne(second, subscription, 'w2', LATER)
    const undone = later.filter(({ position }) => !kept.includes(position))
    expect(undone.length).toBeGreaterThan(0)
    expect(again.map(({ position }) => position)).toEqual(undone.map(({ position }) => position))
    expect(again.every(({ attempt }) => attempt === 1)).toBe(true)
    expect(tokensOf(again).filter((token) => tokensOf(later).includes(token))).toEqual([])

    // The worker that does not know yet that it lost them settles nothing of what is another's now.
    const late = await first.settle(undone.map((delivery) => settled(delivery, DONE)))
    expect(late.lost).toHaveLength(undone.length)
    await server.restart('immediate')
    expect(await leasedTo('w2')).toEqual(again.map(({ position }) => position))
  },
)
