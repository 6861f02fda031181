import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bePatient, comes } from '../support/patience.ts'
import {
  numbersOf,
  type StreamScene,
  type StreamServer,
  startStreamServer,
  stopReader,
  streamScene,
  VERSIONS,
} from './scene.ts'

bePatient()

/** What verify says of the only subscription, once everything is recorded. */
async function settled(scene: StreamScene, matched: number): Promise<void> {
  await comes('verify holds and counts all', async () => {
    const { subscriptions, holds } = await scene.outbox.proof.verify()
    expect(holds).toBe(true)
    return subscriptions[0]?.matched === matched && subscriptions[0].awaited === 0
  })
}

describe.each(VERSIONS)('on PostgreSQL %i', (version) => {
  let server: StreamServer
  beforeAll(async () => {
    server = await startStreamServer(version)
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const damages = [
    {
      what: 'dropped',
      reason: 'slot-missing',
      sql: (slot: string) => [`select pg_drop_replication_slot('${slot}')`],
    },
    {
      what: 'advanced by hand',
      reason: 'slot-advanced',
      sql: (slot: string) => [`select pg_replication_slot_advance('${slot}', pg_current_wal_lsn())`],
    },
    {
      what: 'dropped and made again',
      reason: 'slot-advanced',
      sql: (slot: string) => [
        `select pg_drop_replication_slot('${slot}')`,
        `select pg_create_logical_replication_slot('${slot}', 'pgoutput')`,
      ],
    },
    {
      what: 'made by somebody else for another plugin',
      reason: 'slot-replaced',
      sql: (slot: string) => [
        `select pg_drop_replication_slot('${slot}')`,
        `select pg_create_physical_replication_slot('${slot}', true)`,
      ],
      isLeft: true,
    },
    {
      what: 'kept over a fail-over, of a server that is another now',
      reason: 'server-changed',
      sql: (_: string, schema: string) => [`update ${schema}.outbox_stream set server = '1/1'`],
    },
    {
      what: 'copied with the files of a server that was promoted, and not synchronised',
      reason: 'server-changed',
      sql: (_: string, schema: string) => [
        `update ${schema}.outbox_stream set server = split_part(server, '/', 1) || '/99'`,
      ],
    },
  ]
  test.each(damages)(
    'a slot that was $what is told of, and what it lost comes from the table',
    async ({ reason, sql, isLeft = false }) => {
      await using scene = await streamScene(server.url)
      const first = scene.work('mirror', { order: 'aggregate' })
      await first.worker.start()
      await first.saw('streaming')
      await scene.place('a', 'b')
      await first.handled(2)
      await stopReader(first, scene)
      for (let round = 0; round < 10; round += 1) await scene.place('a', 'b')
      const [slot] = await scene.slots()
      const name = String(slot?.['slot_name'])
      for (const text of sql(name, scene.schema)) await scene.pool.query(text)
      for (let round = 0; round < 10; round += 1) await scene.place('a', 'b')

      const second = scene.work('mirror', { order: 'aggregate' })
      await second.worker.start()
      await second.saw('streaming')
      await scene.place('a', 'b')
      await comes('the last has come', () => numbersOf(second.events).includes(44))
      expect(second.told).toContainEqual({ kind: 'streamGap', subscription: 'mirror', reason })
      expect([...new Set(numbersOf(second.events))].filter((n) => n > 2)).toHaveLength(42)
      const ofA = numbersOf(second.events.filter(({ aggregateId }) => aggregateId === 'a'))
      expect(ofA).toEqual(ofA.toSorted((one, other) => one - other))
      await settled(scene, 44)
      const [now] = await scene.slots()
      expect(now?.['slot_name'] === name).toBe(!isLeft)
      if (isLeft) await scene.pool.query('select pg_drop_replication_slot($1)', [name])
    },
  )

  test('a transaction that was open while the slot was lost is delivered when it commits', async () => {
    await using scene = await streamScene(server.url)
    const first = scene.work('mirror')
    await first.worker.start()
    await first.saw('streaming')
    await scene.place('a')
    await first.handled(1)
    const open = await scene.pool.connect()
    await open.query('begin')
    await scene.outbox.publish(open, 'OrderPaid', { aggregateId: 'late', payload: { n: 100 } })
    await scene.place('b')
    await first.handled(2)
    // Progress passes the open transaction: its snapshot has it as running.
    const { snapshot } = await scene.progress()
    await comes('a later snapshot is recorded', async () => (await scene.progress())['snapshot'] !== snapshot)
    await stopReader(first, scene)
    const [slot] = await scene.slots()
    await scene.pool.query(`select pg_drop_replication_slot($1)`, [slot?.['slot_name']])

    const second = scene.work('mirror')
    await second.worker.start()
    await second.saw('streamGap')
    await open.query('commit')
    open.release()
    await comes('the late one', () => numbersOf(second.events).includes(100))
    await second.saw('streaming')
    await settled(scene, 3)
  })

  test.each([
    { recorded: 'when something is confirmed', isNaive: true },
    { recorded: 'as it came in the log', isNaive: false },
  ])('of a snapshot recorded $recorded, an event in hand is lost: $isNaive', async ({ isNaive }) => {
    await using scene = await streamScene(server.url)
    const never = new Promise<void>(() => undefined)
    const first = scene.work('mirror', { concurrency: 1, timeoutMs: null }, ({ aggregateId }) =>
      aggregateId === 'held' ? never : undefined,
    )
    await first.worker.start()
    await first.saw('streaming')
    await scene.place('a')
    await first.handled(1)
    await scene.place('held')
    await comes('it is in hand', () => first.events.length === 2)
    const { until } = await scene.progress()
    await comes('a heartbeat', async () => String((await scene.progress())['until']) !== String(until))
    await stopReader(first, scene, 0)
    if (isNaive)
      await scene.pool.query(`update ${scene.schema}.outbox_stream set snapshot = pg_current_snapshot()`)
    await scene.pool.query(`select pg_drop_replication_slot(slot) from ${scene.schema}.outbox_stream`)

    const second = scene.work('mirror')
    await second.worker.start()
    await second.saw('streaming')
    await scene.place('c')
    await comes('the last', () => numbersOf(second.events).includes(3))
    expect(numbersOf(second.events).includes(2)).toBe(!isNaive)
  })

  test('a slot that the server invalidated is told of, and what it lost comes from the table', async () => {
    await using small = await startStreamServer(version, {
      max_slot_wal_keep_size: '16MB',
      min_wal_size: '32MB',
      max_wal_size: '32MB',
    })
    await using scene = await streamScene(small.url)
    const first = scene.work('mirror')
    await first.worker.start()
    await first.saw('streaming')
    await stopReader(first, scene)
    await scene.place('a', 'b')
    for (let round = 0; round < 6; round += 1) {
      await scene.pool.query(
        `create table ${scene.schema}.load_${round} as select repeat(md5(n::text), 30) as t from generate_series(1, 20000) n`,
      )
      await scene.pool.query('select pg_switch_wal()')
      await scene.pool.query('checkpoint')
    }
    expect((await scene.slots())[0]?.['wal_status']).toBe('lost')
    const second = scene.work('mirror')
    await second.worker.start()
    await second.handled(2)
    await second.saw('streaming')
    expect(second.told).toContainEqual({
      kind: 'streamGap',
      subscription: 'mirror',
      reason: 'slot-invalidated',
    })
    await settled(scene, 2)
  })

  test('past its budget the log is given up, whatever handlers still do, and the table serves', async () => {
    await using scene = await streamScene(server.url)
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const options = { walBudgetBytes: 16 * 1_024 * 1_024, concurrency: 1, maxAttempts: 1, timeoutMs: null }
    const reader = scene.work('mirror', options, ({ aggregateId }) => {
      if (aggregateId === 'dead') throw new Error('never')
      return held
    })
    await reader.worker.start()
    await reader.saw('streaming')
    await scene.place('dead')
    await reader.saw('dead')
    await scene.place('a', 'b')
    await comes('one is in hand', () => reader.events.length === 2)
    await scene.pool.query(
      `create table ${scene.schema}.load as select n, repeat('x', 1000) as t from generate_series(1, 30000) n`,
    )
    await comes('the server keeps nothing more', async () => (await scene.slots()).length === 0)
    expect(reader.events).toHaveLength(2)
    release()
    await reader.saw('streamGap')
    expect(reader.told).toContainEqual({ kind: 'streamGap', subscription: 'mirror', reason: 'wal-budget' })
    await reader.saw('streaming', 2)
    await scene.place('c')
    await comes('all of them', () => numbersOf(reader.events).includes(4))
    // It is a dead letter already: the table has it, and nobody is handed it again.
    expect(numbersOf(reader.events).filter((n) => n === 1)).toHaveLength(1)
    await settled(scene, 4)
  })

  test('heartbeats move the slot of a database in which nothing is published', async () => {
    await using scene = await streamScene(server.url)
    const reader = scene.work('mirror')
    await reader.worker.start()
    await reader.saw('streaming')
    const before = (await scene.slots())[0]?.['confirmed_flush_lsn']
    await comes('it moves', async () => (await scene.slots())[0]?.['confirmed_flush_lsn'] !== before)
    if (version >= 17) expect((await scene.slots())[0]?.['failover']).toBe(true)
  })
})
