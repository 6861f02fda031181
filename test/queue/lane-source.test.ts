import { describe, expect, test } from 'vitest'
import { LaneSource } from '../../src/queue/lane-source.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { noJitter, positionsOf } from './fakes.ts'
import { MemoryStore } from './memory-store.ts'
import { MemoryTables } from './memory-tables.ts'

const SHARE_EVERY_MS = 10_000

function setup({
  lanes = 4,
  tables = new MemoryTables(new ManualClock(), lanes),
  workerId = 'w1',
}: Setup = {}) {
  const store = new MemoryStore(tables)
  const inHand = new Map<number, number>()
  const characters = new Map<number, number>()
  const tokens: string[] = []
  const source = new LaneSource({
    store,
    options: { subscriptionId: 1, workerId, leaseMs: 30_000, marginMs: 3_000 },
    clock: tables.clock,
    random: noJitter,
    shareEveryMs: SHARE_EVERY_MS,
    window: { most: 100, least: 10, characters: 1_000 },
    countInHand: (lane) => inHand.get(lane) ?? 0,
    charactersInHand: (lane) => characters.get(lane) ?? 0,
    tokensInHand: () => tokens,
    onCrashed: () => undefined,
    onRefused: () => undefined,
  })
  tables.workers.set(workerId, Number.POSITIVE_INFINITY)
  return { tables, store, source, inHand, characters, tokens, clock: tables.clock }
}

interface Setup {
  readonly lanes?: number
  readonly tables?: MemoryTables
  readonly workerId?: string
}

const numbers = (source: LaneSource): number[] => source.lanes().map(({ lane }) => lane)

describe('the source of lanes', () => {
  test('takes all lanes for the only worker', async () => {
    const { source } = setup()
    await source.tend()
    expect(numbers(source)).toEqual([0, 1, 2, 3])
  })

  test('gives back what is more than its share when another worker comes, once the lanes are drained', async () => {
    const { source, tables, inHand, clock } = setup()
    await source.tend()
    for (const lane of [0, 1, 2, 3]) inHand.set(lane, lane === 2 ? 0 : 5)
    tables.workers.set('w2', Number.POSITIVE_INFINITY)
    await clock.advance(SHARE_EVERY_MS)
    await source.tend()
    await source.tend()
    expect(numbers(source)).toEqual([0, 1, 3])
    inHand.set(0, 0)
    await source.tend()
    expect(numbers(source)).toEqual([1, 3])
    expect(tables.lanes.map(({ owner }) => owner)).toEqual([null, 'w1', null, 'w1'])
  })

  test('claims nothing of a lane that is being drained', async () => {
    const { source, tables, inHand, clock } = setup({ lanes: 2 })
    await source.tend()
    for (const lane of [0, 1]) inHand.set(lane, 1)
    tables.workers.set('w2', Number.POSITIVE_INFINITY)
    await clock.advance(SHARE_EVERY_MS)
    await source.tend()
    const keys = ['a', 'b', 'c', 'd', 'e', 'f'].map((key) => tables.publish(key))
    const { deliveries } = await source.take(100)
    expect(deliveries.length).toBeGreaterThan(0)
    expect(new Set(deliveries.map(({ lane }) => lane)).size).toBe(1)
    expect(deliveries.length).toBeLessThan(keys.length)
  })

  test('reads another lane first each time', async () => {
    const { source, tables } = setup({ lanes: 2 })
    await source.tend()
    const lanes: number[] = []
    for (let n = 0; n < 40; n += 1) tables.publish(`key-${n}`)
    for (let n = 0; n < 4; n += 1) lanes.push((await source.take(1)).deliveries[0]?.lane ?? -1)
    expect(lanes).toEqual([0, 1, 0, 1])
  })

  test('reads no more of a lane whose events pile up in hand, so that the others are read', async () => {
    const { source, tables, inHand } = setup({ lanes: 2 })
    await source.tend()
    for (let n = 0; n < 20; n += 1) tables.publish(`key-${n}`)
    inHand.set(0, 67)
    const { deliveries } = await source.take(100)
    expect(new Set(deliveries.map(({ lane }) => lane))).toEqual(new Set([1]))
    expect(source.hasRoomAgain()).toBe(false)
    inHand.set(0, 49)
    expect(source.hasRoomAgain()).toBe(true)
  })

  test('reads no more of a lane whose few events are large, so that the others have room for theirs', async () => {
    const { source, tables, inHand, characters } = setup({ lanes: 8 })
    await source.tend()
    for (let n = 0; n < 80; n += 1) tables.publish(`key-${n}`)
    inHand.set(3, 2)
    characters.set(3, 250)
    const { deliveries } = await source.take(100)
    expect(new Set(deliveries.map(({ lane }) => lane))).toEqual(new Set([0, 1, 2, 4, 5, 6, 7]))
    expect(source.hasRoomAgain()).toBe(false)
    characters.set(3, 125)
    expect(source.hasRoomAgain()).toBe(true)
  })

  test('reads more than its share of a lane while the others have little in hand', async () => {
    const { source, tables, inHand } = setup({ lanes: 2 })
    await source.tend()
    for (let n = 0; n < 20; n += 1) tables.publish(`key-${n}`)
    inHand.set(0, 60)
    const { deliveries } = await source.take(100)
    expect(new Set(deliveries.map(({ lane }) => lane))).toEqual(new Set([0, 1]))
    inHand.set(1, 30)
    tables.publish('key-0')
    tables.publish('key-1')
    const more = await source.take(100)
    expect(new Set(more.deliveries.map(({ lane }) => lane))).toEqual(new Set([1]))
  })

  test('U4 does not trust a lane after a claim with an unknown outcome: what it may have taken goes back first', async () => {
    const { source, store, tables } = setup({ lanes: 1 })
    await source.tend()
    for (let n = 0; n < 4; n += 1) tables.publish('a')
    store.interpose = (operation, when) => {
      if (operation === 'claimLanes' && when === 'after') throw new Error('connection cut')
    }
    await expect(source.take(2)).rejects.toThrow('connection cut')
    store.interpose = () => {}
    expect((await source.take(2)).deliveries).toEqual([])
    await source.tend()
    const { deliveries } = await source.take(2)
    expect(positionsOf(deliveries)).toEqual([1, 2])
    expect(tables.lanes[0]?.epoch).toBe(2)
  })

  test('U4 keeps what it has in hand when it renews a lane', async () => {
    const { source, store, tables, tokens, inHand } = setup({ lanes: 1 })
    await source.tend()
    for (let n = 0; n < 4; n += 1) tables.publish('a')
    const first = await source.take(1)
    inHand.set(0, 1)
    tokens.push(...first.deliveries.map(({ lease }) => lease.token))
    store.interpose = (operation, when) => {
      if (operation === 'claimLanes' && when === 'after') throw new Error('connection cut')
    }
    await expect(source.take(2)).rejects.toThrow('connection cut')
    store.interpose = () => {}
    await source.tend()
    expect(tables.rows.map(({ status }) => status)).toEqual(['PROCESSING', 'PENDING', 'PENDING', 'PENDING'])
    expect(positionsOf((await source.take(9)).deliveries)).toEqual([2, 3])
  })

  test('renews a lane again when the answer to that was lost too, and is not told by a heartbeat meanwhile', async () => {
    const { source, store, tables } = setup({ lanes: 1 })
    await source.tend()
    tables.publish('a')
    store.interpose = (operation, when) => {
      if (operation !== 'heartbeat' && when === 'after') throw new Error('connection cut')
    }
    await expect(source.take(2)).rejects.toThrow('connection cut')
    await expect(source.tend()).rejects.toThrow('connection cut')
    await expect(source.tend()).rejects.toThrow('connection cut')
    expect(source.loseLanes(source.lanes())).toEqual([])
    store.interpose = () => {}
    await source.tend()
    expect(tables.lanes[0]?.epoch).toBe(4)
    expect(source.lanes()).toMatchObject([{ epoch: '4' }])
    expect(positionsOf((await source.take(9)).deliveries)).toEqual([1])
  })

  test('counts a lane as lost when no heartbeat has confirmed it for too long', async () => {
    const { source, clock } = setup()
    await source.tend()
    await clock.advance(26_000)
    expect(source.expireLanes(clock.monotonicMs())).toEqual([])
    await clock.advance(1_001)
    expect(source.expireLanes(clock.monotonicMs())).toEqual([0, 1, 2, 3])
    expect(source.lanes()).toEqual([])
  })

  test('does not lose a lane that was taken again since it was asked about', async () => {
    const { source, tables, clock } = setup({ lanes: 1 })
    await source.tend()
    const before = source.lanes()
    await source.leave()
    await clock.advance(SHARE_EVERY_MS)
    await source.tend()
    expect(tables.lanes[0]?.epoch).toBe(2)
    expect(source.loseLanes(before)).toEqual([])
    expect(numbers(source)).toEqual([0])
  })

  test('dates the lease of what it claims by its lane, not by the claim', async () => {
    const { source, tables, clock } = setup({ lanes: 1 })
    await source.tend()
    await clock.advance(9_000)
    tables.publish('a')
    expect((await source.take(10)).confirmedAtMs).toBe(0)
  })

  test('takes again at once what an answer that never came has given it', async () => {
    const { source, store, tables } = setup()
    store.interpose = (operation, when) => {
      if (operation === 'takeLanes' && when === 'after') throw new Error('connection cut')
    }
    await expect(source.tend()).rejects.toThrow('connection cut')
    expect(tables.lanes.map(({ owner }) => owner)).toEqual(['w1', 'w1', 'w1', 'w1'])
    store.interpose = () => {}
    await source.tend()
    expect(numbers(source)).toEqual([0, 1, 2, 3])
    expect(tables.lanes.map(({ epoch }) => epoch)).toEqual([2, 2, 2, 2])
  })
})
