import { execFile } from 'node:child_process'
import { rename, rm } from 'node:fs/promises'
import { promisify } from 'node:util'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { quoteSchema } from '../../src/store/postgres/identifiers.ts'
import {
  aggregates,
  claim,
  claimLanes,
  DONE,
  join,
  retryNow,
  settled,
  takeLanes,
} from '../store/contract/helpers.ts'
import { column, one } from '../store/postgres/fixtures.ts'
import { installTables } from '../support/install-tables.ts'
import { startOwnPostgres } from '../support/own-postgres.ts'
import { eventually } from '../support/program.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { type Hazard, hazard, publish, publishMany } from './support.ts'

const run = promisify(execFile)

/** A server that another can take the place of: one that has not got what was committed last. */
interface FailingServer extends AsyncDisposable {
  readonly h: Hazard
  /** What is committed by now, the other server has too. */
  copy(): Promise<void>
  /** The other server takes over, at the same address. */
  failOver(): Promise<void>
}

async function failingServer(): Promise<FailingServer> {
  const server = await startOwnPostgres()
  const schema = 'own'
  const url = new URL(server.url)
  url.searchParams.set('options', `-c search_path=${schema}`)
  const pool = sturdyPool({ connectionString: url.href })
  await installTables(pool, schema)
  const standby = `${server.dataDir}.standby`
  const drop = async (): Promise<void> => {
    await pool.end()
    await server.stop()
    await rm(standby, { recursive: true, force: true })
  }
  const h = await hazard(() =>
    Promise.resolve({
      schema,
      url: url.href,
      pool,
      drop,
      quoted: quoteSchema(schema),
      [Symbol.asyncDispose]: drop,
    }),
  )
  return {
    h,
    async copy() {
      await server.kill()
      await run('cp', ['-a', server.dataDir, standby])
      await server.restart()
      await untilReached(pool)
    },
    async failOver() {
      await server.kill()
      await rm(server.dataDir, { recursive: true })
      await rename(standby, server.dataDir)
      await server.restart()
      await untilReached(pool)
    },
    [Symbol.asyncDispose]: () => h[Symbol.asyncDispose](),
  }
}

/** Until the pool has found out which of its connections are broken. */
function untilReached(pool: pg.Pool): Promise<void> {
  return eventually('the server answers', () =>
    pool.query('select 1').then(
      () => true,
      () => false,
    ),
  )
}

/** What a worker's store answers once its pool has found out that its connections are broken. */
async function answered<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  let answer: { readonly is: Answer } | null = null
  await eventually('the store answers', async () => {
    answer = await ask().then(
      (is) => ({ is }),
      () => null,
    )
    return answer !== null
  })
  if (answer === null) throw new Error('no answer')
  return (answer as { readonly is: Answer }).is
}

const LOST = 500

describe('a server that lost commits and takes the place of another', () => {
  test('gives positions again: claims begin where its own events are, and in order', async () => {
    await using server = await failingServer()
    const { h } = server
    const clock = new ManualClock()
    const { store } = h.worker('w', clock)
    const plain = await join(store, { name: 'plain' })
    const ordered = await join(store, { name: 'ordered', orderBy: 'aggregate' })
    await server.copy()
    const lanes = await answered(() => takeLanes(store, ordered, 'w'))
    await publishMany(h, LOST, 'n')
    for (const take of [
      () => claim(store, plain, 'w', LOST),
      () => claimLanes(store, ordered, 'w', lanes, LOST),
    ]) {
      const taken = await take()
      expect(taken).toHaveLength(LOST)
      await store.settle(taken.map((delivery) => settled(delivery, DONE)))
    }
    // One look proposes a bound, the next decides on it. The third begins there.
    for (let look = 0; look < 2; look += 1) {
      await clock.advance(1_000)
      await claim(store, plain, 'w')
      await claimLanes(store, ordered, 'w', lanes)
    }
    await server.failOver()
    const again = await answered(() => takeLanes(store, ordered, 'w'))
    // Half of them have positions below the bound, and each key has events on both sides of it.
    await publishMany(h, LOST * 2, 'n % 100')
    expect(Number(await one(h.db.pool, 'select min(id) from outbox_delivery'))).toBeLessThanOrEqual(LOST)

    const first = await claim(store, plain, 'w', 10)
    expect(first.map(({ position }) => position)).toEqual(
      await column(
        h.db.pool,
        'select id from outbox_delivery where subscription_id = $1 order by id limit 10',
        [plain.id],
      ),
    )
    const ofKeys = await claimLanes(store, ordered, 'w', again, LOST * 2)
    expect(ofKeys).toHaveLength(LOST * 2)
  })

  test('gives leases again: the result of an attempt from before is nobody else’s', async () => {
    await using server = await failingServer()
    const { h } = server
    const { store } = h.worker('w')
    const sub = await join(store, { name: 'plain' })
    await server.copy()
    await answered(() => publish(h.db.pool, ['lost']))
    const [lost] = await answered(() => claim(store, sub, 'w'))
    await server.failOver()
    await publish(h.db.pool, ['kept'])
    const [kept] = await answered(() => claim(store, sub, 'w'))
    if (lost === undefined || kept === undefined) throw new Error('nothing was claimed')
    expect(aggregates([lost, kept])).toEqual(['lost', 'kept'])
    expect(lost.position).toBe(kept.position)

    const late = await store.settle([settled(lost, DONE)])
    expect(late.lost).toMatchObject([{ position: lost.position }])
    expect((await store.settle([settled(kept, retryNow)])).lost).toEqual([])
    expect(await one(h.db.pool, 'select status from outbox_delivery')).toBe('PENDING')
  })
})
