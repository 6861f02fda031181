import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/runtime/clock.ts'
import type { PgPoolClient, PgQueryConfig } from '../../src/store/postgres/client.ts'
import { workerPool } from '../../src/store/postgres/sibling-pool.ts'
import { PostgresWorkerStore } from '../../src/store/postgres/worker-store.ts'
import type { RegisteredSubscription } from '../../src/store/subscription-store.ts'
import { claim, claimLanes, DONE, join, retryLater, settled, takeLanes } from '../store/contract/helpers.ts'
import { insertEvent } from '../store/postgres/fixtures.ts'
import { explainPrepared, mostRowsScanned, type PlanNode, seqScans } from './plan.ts'
import { createOwnDatabase, type Hazard, hazard, publishMany, withoutAutovacuum } from './support.ts'

const LOADED = 50_000
const LIMIT = 100

/** The statements that a worker has its session keep, by name, as they were sent first: on tables nearly empty. */
type Kept = Map<string, readonly unknown[]>

interface Loaded {
  readonly h: Hazard
  readonly store: PostgresWorkerStore
  readonly unordered: RegisteredSubscription
  readonly kept: Kept
  /** The one connection of the worker. */
  readonly client: PgPoolClient
}

/** Takes note of what this client is sent under a name. */
function watch(client: PgPoolClient): Kept {
  const kept: Kept = new Map()
  const query = client.query.bind(client) as (...sent: unknown[]) => Promise<never>
  client.query = (first: string | PgQueryConfig, ...rest: unknown[]) => {
    if (typeof first === 'object' && first.name !== undefined) kept.set(first.name, first.values)
    return query(first, ...rest)
  }
  return kept
}

/** A worker that has claimed and settled by every statement it has, and tables that are loaded after that. */
async function load(): Promise<Loaded> {
  const h = await hazard(createOwnDatabase)
  const connections = workerPool(h.db.pool, () => undefined)
  const client = await connections.pool.connect()
  const store = new PostgresWorkerStore(
    { pool: { connect: async () => client, end: () => connections.pool.end() }, own: true },
    h.db.quoted,
    systemClock,
  )
  const kept = watch(client)
  const release = client.release.bind(client)
  client.release = () => undefined
  const unordered = await join(store, { name: 'unordered' })
  const ordered = await join(store, { name: 'ordered', orderBy: 'aggregate' })
  // Nothing may tell the planner of the rows that are loaded below.
  for (const table of ['outbox_event', 'outbox_delivery']) {
    await withoutAutovacuum(h, table)
    await h.db.pool.query(`vacuum analyze ${table}`)
  }
  await insertEvent(h.db.pool)
  const lanes = await takeLanes(store, ordered, 'w')
  const [free] = await claim(store, unordered, 'w', LIMIT)
  const [inOrder] = await claimLanes(store, ordered, 'w', lanes, LIMIT)
  if (free === undefined || inOrder === undefined) throw new Error('nothing was claimed')
  await store.settle([settled(free, DONE), settled(inOrder, retryLater)])
  // Something is held now: the long way.
  await claimLanes(store, ordered, 'w', lanes, LIMIT)
  await publishMany(h, LOADED, 'n % 1000')
  const dispose = h[Symbol.asyncDispose].bind(h)
  return {
    h: {
      ...h,
      [Symbol.asyncDispose]: async () => {
        release(true)
        await connections.pool.end()
        await dispose()
      },
    },
    store,
    unordered,
    kept,
    client,
  }
}

describe('a plan kept since the tables were empty', () => {
  let loaded: Loaded

  beforeAll(async () => {
    loaded = await load()
  })

  afterAll(async () => {
    await loaded.h[Symbol.asyncDispose]()
  })

  function explainKept(name: string, values = loaded.kept.get(name)): Promise<PlanNode> {
    if (values === undefined) throw new Error(`${name} was not sent`)
    return explainPrepared(loaded.client as never, name, values)
  }

  test('there is one of what is sent again and again, and of nothing else', () => {
    expect([...loaded.kept.keys()].toSorted()).toEqual([
      'commitpost_claim',
      'commitpost_claim_fresh_lanes',
      'commitpost_claim_lanes',
      'commitpost_propose',
      'commitpost_settle_done',
    ])
  })

  test.each(['commitpost_claim', 'commitpost_claim_lanes'])(
    'has %s read the rows it takes and no others',
    async (name) => {
      const plan = await explainKept(name)

      expect(plan['Actual Rows']).toBe(LIMIT)
      expect(seqScans(plan)).toEqual([])
      expect(mostRowsScanned(plan)).toBeLessThanOrEqual(LIMIT + 1)
    },
  )

  test('has the claim of lanes of which nothing is held read no more than a look at what is', async () => {
    await loaded.h.db.pool.query(
      'update outbox_delivery set fresh = true, held = false, held_since = null, next_retry_at = null where held',
    )

    const plan = await explainKept('commitpost_claim_fresh_lanes')

    expect(plan['Actual Rows']).toBe(LIMIT)
    expect(seqScans(plan)).toEqual([])
    expect(mostRowsScanned(plan)).toBeLessThanOrEqual(LIMIT)
  })

  test('has results find their rows', async () => {
    const { store, unordered } = loaded
    const taken = await claim(store, unordered, 'w', LIMIT)
    const [first] = taken
    const positions = taken.map(({ position }) => position)

    const plan = await explainKept('commitpost_settle_done', [
      unordered.id,
      first?.lease.token,
      positions,
      true,
    ])

    expect(seqScans(plan)).toEqual([])
    expect(mostRowsScanned(plan)).toBe(LIMIT)
  })
})
