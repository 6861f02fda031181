import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { partitionTables } from '../../src/store/postgres/partition-tables.ts'
import { bePatient, comes } from '../support/patience.ts'
import { numbersOf, type StreamServer, startStreamServer, streamScene, VERSIONS } from './scene.ts'

bePatient()

describe.each(VERSIONS)('on PostgreSQL %i', (version) => {
  let server: StreamServer
  beforeAll(async () => {
    server = await startStreamServer(version)
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const damages = [
    {
      what: 'dropped and made again',
      break: (name: string) => `drop publication ${name}`,
      mend: (name: string, table: string) =>
        `create publication ${name} for table ${table} with (publish = 'insert', publish_via_partition_root = true)`,
    },
    {
      what: 'without the table for a while',
      break: (name: string, table: string) => `alter publication ${name} drop table ${table}`,
      mend: (name: string, table: string) => `alter publication ${name} add table ${table}`,
    },
    {
      what: 'set to publish something else for a while',
      break: (name: string) => `alter publication ${name} set (publish = 'delete')`,
      mend: (name: string) => `alter publication ${name} set (publish = 'insert')`,
    },
  ]
  test.each(damages)(
    'a publication that was $what is told of, and what the log did not have comes from the table',
    async ({ break: broken, mend }) => {
      await using scene = await streamScene(server.url)
      const table = `${scene.schema}.outbox_event`
      const { rows } = await scene.pool.query(`select ${scene.schema}.outbox_publication() as name`)
      const name = String(rows[0]?.['name'])
      const reader = scene.work('mirror', { order: 'aggregate' })
      await reader.worker.start()
      await reader.saw('streaming')
      await scene.place('a', 'b')
      await reader.handled(2)
      await scene.pool.query(broken(name, table))
      await scene.place('a', 'b')
      await scene.pool.query(mend(name, table))
      await scene.place('a', 'b')
      await comes('all have come', () => new Set(numbersOf(reader.events)).size === 6)
      const gap = { kind: 'streamGap', subscription: 'mirror', reason: 'publication-changed' }
      await comes('it is told of', () => reader.told.some((told) => isDeepStrictEqual(told, gap)))
      await comes('verify holds and counts all', async () => {
        const { subscriptions, holds } = await scene.outbox.proof.verify()
        expect(holds).toBe(true)
        return subscriptions[0]?.matched === 6 && subscriptions[0].awaited === 0
      })
    },
  )

  test('while there is no publication the table serves, and the statement that makes it is told', async () => {
    await using scene = await streamScene(server.url)
    const { rows } = await scene.pool.query(`select ${scene.schema}.outbox_publication() as name`)
    const reader = scene.work('mirror')
    await reader.worker.start()
    await reader.saw('streaming')
    await scene.pool.query(`drop publication ${String(rows[0]?.['name'])}`)
    await scene.place('a')
    await comes('it has come', () => reader.events.length > 0)
    await reader.saw('error')
    await comes('the remedy', () =>
      reader.told.some((told) => told.kind === 'error' && String(told.error).includes('create publication')),
    )
    await scene.place('b')
    await comes('the next has come', () => numbersOf(reader.events).includes(2))
  })

  test('tables that become partitioned while the log is read leave no gap in it', async () => {
    await using scene = await streamScene(server.url)
    const reader = scene.work('mirror', { order: 'aggregate' })
    await reader.worker.start()
    await reader.saw('streaming')
    await scene.place('a', 'b')
    await partitionTables(scene.pool, { schema: scene.schema })
    await scene.place('a', 'b')
    await reader.handled(4)
    const { until } = await scene.progress()
    await comes('a heartbeat', async () => String((await scene.progress())['until']) !== String(until))
    await scene.place('a', 'b')
    await reader.handled(6)
    expect(numbersOf(reader.events.filter(({ aggregateId }) => aggregateId === 'a'))).toEqual([1, 3, 5])
    expect(reader.told.filter(({ kind }) => kind === 'streamGap' || kind === 'error')).toEqual([])
  })
})
