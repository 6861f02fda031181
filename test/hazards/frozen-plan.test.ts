import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  beat,
  claim,
  claimLanes,
  DONE,
  join,
  retryNow,
  settled,
  takeLanes,
} from '../store/contract/helpers.ts'
import { postgresAvailable } from '../support/servers.ts'
import { explain, explainPrepared, mostRowsScanned, seqScans, withLimit } from './plan.ts'
import type { Sent } from './stepping-pool.ts'
import {
  asIfHeld,
  createOwnDatabase,
  createOwnServer,
  type Hazard,
  hazard,
  publishMany,
  type SteppedWorker,
  withoutAutovacuum,
} from './support.ts'

const LOADED = 100_000
const LIMIT = 100
const FEW = 5

// The claim as one would write it first: find, update with a join, join the event. Its plan is the planner's to choose.
const JOIN_CLAIM = `
  with pick as (
    select d.subscription_id, d.lane, d.id from outbox_delivery d
     where d.subscription_id = $1::int and d.lane = 0 and d.status = 'PENDING' and not d.held
     order by d.id limit $2::int for update skip locked),
  claimed as (
    update outbox_delivery d set status = 'PROCESSING', fresh = false, locked_by = 'w', locked_until = now(), lease_token = 1
      from pick p where d.subscription_id = p.subscription_id and d.lane = p.lane and d.id = p.id
    returning d.id, d.event_id)
  select c.id, e.payload from claimed c join outbox_event e on e.event_id = c.event_id`

/** The claim with a smaller limit: what goes wrong here goes wrong for every row. */
const few = (sent: Sent): readonly unknown[] => withLimit(sent, FEW).values

/** A connection that prepared both claims, and planned them once and for all. */
async function prepareAll(h: Hazard, ours: Sent, setting: string): Promise<pg.Client> {
  const client = await h.connect('prepared')
  await client.query(`set plan_cache_mode = force_generic_plan; ${setting}`)
  await client.query(`prepare ours as ${ours.text}`)
  await client.query(`prepare joined as ${JOIN_CLAIM}`)
  await explainPrepared(client, 'ours', few(ours))
  await explainPrepared(client, 'joined', [ours.values[0], FEW])
  return client
}

interface Loaded {
  readonly h: Hazard
  readonly worker: SteppedWorker
  readonly ours: Sent
  readonly oursOfLanes: readonly Sent[]
  /** Connections that prepared both claims while the tables were empty; on the second no whole table may be read. */
  readonly frozen: pg.Client
  readonly pinned: pg.Client
}

/** Tables that were empty when their claims were first planned, and are full. */
async function load(create = createOwnDatabase): Promise<Loaded> {
  const h = await hazard(create)
  const worker = h.worker('w')
  const sub = await join(worker.store, { name: 'unordered' })
  const ordered = await join(worker.store, { name: 'ordered', orderBy: 'aggregate' })
  // Nothing may tell the planner of the rows that are loaded below.
  for (const table of ['outbox_event', 'outbox_delivery']) {
    await withoutAutovacuum(h, table)
    await h.db.pool.query(`vacuum analyze ${table}`)
  }
  await claim(worker.store, sub, 'w', LIMIT)
  const ours = worker.pool.lastSent(/for update skip locked/)
  const lanes = await takeLanes(worker.store, ordered, 'w')
  await claimLanes(worker.store, ordered, 'w', lanes, LIMIT)
  const fresh = worker.pool.lastSent(/for update nowait/)
  worker.pool.rewrite = asIfHeld
  await claimLanes(worker.store, ordered, 'w', lanes, LIMIT)
  worker.pool.rewrite = (text) => text
  const oursOfLanes = [fresh, worker.pool.lastSent(/parked as/)]
  const frozen = await prepareAll(h, ours, '')
  const pinned = await prepareAll(h, ours, 'set enable_seqscan = off')
  await publishMany(h, LOADED, 'n % 1000')
  return { h, worker, ours, oursOfLanes, frozen, pinned }
}

describe('a plan made while the tables were empty', () => {
  let loaded: Loaded

  beforeAll(async () => {
    loaded = await load()
  })

  afterAll(async () => {
    await loaded.h[Symbol.asyncDispose]()
  })

  test('is never made in a session that others use too: no statement of a worker has a name there', async () => {
    const { worker } = loaded
    const sub = await join(worker.store, { name: 'unordered' })
    const [first, second] = await claim(worker.store, sub, 'w2', 2)
    if (first === undefined || second === undefined) throw new Error('nothing was claimed')
    await beat(worker.store, sub, 'w2', [first, second])
    await worker.store.settle([settled(first, DONE), settled(second, retryNow)])
    await worker.store.recover([sub.id])
    expect(worker.pool.sent.length).toBeGreaterThan(20)
    expect(worker.pool.sent.filter(({ name }) => name !== undefined)).toEqual([])
  })

  test('does not slow the claim, which is planned anew: it reads the rows it takes and no others', async () => {
    const plan = await explain(await loaded.h.connect('explain'), loaded.ours)
    expect(plan['Actual Rows']).toBe(LIMIT)
    expect(seqScans(plan)).toEqual([])
    expect(mostRowsScanned(plan)).toBeLessThanOrEqual(LIMIT)
  })

  test('does not slow the claim of lanes either', async () => {
    const client = await loaded.h.connect('explain')
    for (const sent of loaded.oursOfLanes) {
      const plan = await explain(client, sent)
      expect(plan['Actual Rows']).toBe(LIMIT)
      const large = ['outbox_delivery', 'outbox_event']
      expect(seqScans(plan).filter((table) => large.includes(table))).toEqual([])
      expect(mostRowsScanned(plan)).toBeLessThanOrEqual(LIMIT)
    }
  })
})

// On a server of its own: so much that other tests change in the catalogue at the same time that a connection cannot keep
// up with it would make it forget its plans.
describe.runIf(postgresAvailable())('a plan made while the tables were empty, had the claim a name', () => {
  let loaded: Loaded

  beforeAll(async () => {
    loaded = await load(createOwnServer)
  })

  afterAll(async () => {
    await loaded.h[Symbol.asyncDispose]()
  })

  test('would have it read everything for every event', async () => {
    const { ours, frozen } = loaded
    const plan = await explainPrepared(frozen, 'ours', few(ours))
    expect(plan['Actual Rows']).toBe(FEW)
    expect(seqScans(plan)).toContain('outbox_event')
    expect(mostRowsScanned(plan)).toBeGreaterThanOrEqual(LOADED)
  })

  test('would hurt one by look-ups less where no whole table may be read, and one by joins as before', async () => {
    const { ours, pinned } = loaded
    const ofOurs = await explainPrepared(pinned, 'ours', few(ours))
    expect(ofOurs['Actual Rows']).toBe(FEW)
    expect(seqScans(ofOurs)).toEqual([])
    expect(mostRowsScanned(ofOurs)).toBeLessThanOrEqual(FEW)
    const ofJoins = await explainPrepared(pinned, 'joined', [ours.values[0], FEW])
    expect(ofJoins['Actual Rows']).toBe(FEW)
    expect(mostRowsScanned(ofJoins)).toBeGreaterThanOrEqual(LOADED)
  })
})
