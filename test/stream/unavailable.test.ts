import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createOutbox } from '../../src/outbox.ts'
import { postgresStore, rolesSql } from '../../src/store/postgres/index.ts'
import { bePatient, comes } from '../support/patience.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { shopEvents } from '../worker/postgres-outbox.ts'
import { LEASE_MS, type StreamServer, startStreamServer, streamScene, VERSIONS } from './scene.ts'

bePatient()

describe.each(VERSIONS)('on PostgreSQL %i', (version) => {
  let server: StreamServer
  beforeAll(async () => {
    server = await startStreamServer(version)
  })
  afterAll(() => server[Symbol.asyncDispose]())

  test('where wal_level is not logical the worker says what to do, and the queue works', async () => {
    await using plain = await startStreamServer(version, { wal_level: 'replica' })
    await using scene = await streamScene(plain.url)
    const reader = scene.work('mirror')
    await expect(reader.worker.start()).rejects.toMatchObject({
      code: 'STREAM_UNAVAILABLE',
      message: expect.stringContaining("alter system set wal_level = 'logical'"),
    })
    const queue = scene.work('mirror', { engine: 'queue' })
    await queue.worker.start()
    await scene.place('a')
    await queue.handled(1)
  })

  test('a role with the rights of a worker and REPLICATION is enough; without it the remedy is told', async () => {
    await using scene = await streamScene(server.url)
    const role = `${scene.schema}_login`
    await scene.pool.query(await rolesSql({ schema: scene.schema, prefix: scene.schema }))
    await scene.pool.query(
      `create role ${role} login; grant ${scene.schema}_worker, ${scene.schema}_publisher to ${role}`,
    )
    const url = new URL(server.url)
    url.username = role
    const pool = sturdyPool({ connectionString: url.href })
    const outbox = createOutbox({ store: postgresStore({ pool, schema: scene.schema }), events: shopEvents })
    const seen: string[] = []
    const worker = outbox.worker(
      [
        outbox.subscription('mirror', {
          engine: 'stream',
          maxAttempts: 1,
          on: {
            '*': ({ aggregateId }) => {
              seen.push(aggregateId)
              if (aggregateId === 'bad') throw new Error('no')
            },
          },
        }),
      ],
      { leaseMs: LEASE_MS },
    )
    await expect(worker.start()).rejects.toMatchObject({
      code: 'STREAM_UNAVAILABLE',
      message: expect.stringContaining(`alter role "${role}" replication`),
    })
    await scene.pool.query(`alter role ${role} replication`)
    await worker.start()
    await scene.place('a', 'bad', 'b')
    await comes('all', () => seen.length === 3)
    await comes('the dead letter', async () => (await scene.outbox.deadLetters.count({})) === 1)
    await worker.stop()
    await pool.end()
  })

  test('a worker that can ask nothing any more lets go of the log when it stops', async () => {
    await using scene = await streamScene(server.url)
    const role = `${scene.schema}_refused`
    await scene.pool.query(`create role ${role} superuser login`)
    const url = new URL(server.url)
    url.username = role
    const pool = sturdyPool({ connectionString: url.href })
    const outbox = createOutbox({ store: postgresStore({ pool, schema: scene.schema }), events: shopEvents })
    const seen: string[] = []
    const on = { '*': ({ aggregateId }: { readonly aggregateId: string }) => void seen.push(aggregateId) }
    const told: string[] = []
    const worker = outbox.worker([outbox.subscription('mirror', { engine: 'stream', on })], {
      observers: [({ kind }) => told.push(kind)],
    })
    const readers = async (): Promise<number> => {
      const sql = 'select 1 from pg_stat_replication where usename = $1'
      return (await scene.pool.query(sql, [role])).rows.length
    }
    await worker.start()
    await comes('it reads the log', () => told.includes('streaming'))
    await scene.place('a')
    await comes('it has come', () => seen.length === 1)
    expect(await readers()).toBe(1)
    await scene.pool.query(`alter role ${role} nologin`)
    await scene.pool.query(
      `select pg_terminate_backend(pid, 60000) from pg_stat_activity where usename = $1 and backend_type <> 'walsender'`,
      [role],
    )
    await worker.stop()
    await comes('nobody reads the log', async () => (await readers()) === 0)
    await pool.end()
  })

  test.each([
    { limit: 'max_wal_senders', settings: { max_wal_senders: '1' } },
    { limit: 'max_replication_slots', settings: { max_replication_slots: '1' } },
  ])(
    'where $limit is used up that is told, and by which statement it is raised',
    async ({ limit, settings }) => {
      await using small = await startStreamServer(version, settings)
      await using scene = await streamScene(small.url)
      const first = scene.work('first')
      await first.worker.start()
      await first.saw('streaming')
      const second = scene.work('second')
      const refused = await second.worker.start().then(
        () => null,
        (error: unknown) => error,
      )
      const remedies = (): readonly unknown[] => [
        refused,
        ...second.told.map((told) => (told.kind === 'error' ? told.error : null)),
      ]
      await comes('the remedy', () =>
        remedies().some(
          (error) => error instanceof Error && error.message.includes(`alter system set ${limit} = `),
        ),
      )
      // Meanwhile the table serves, where the worker could start at all.
      await scene.place('a')
      await first.handled(1)
      if (refused === null) await second.handled(1)
    },
  )

  test('without its publication the statement that makes it is told', async () => {
    await using scene = await streamScene(server.url)
    const { rows } = await scene.pool.query(`select ${scene.schema}.outbox_publication() as name`)
    await scene.pool.query(`drop publication ${rows[0].name}`)
    const refused = await scene
      .work('mirror')
      .worker.start()
      .catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: 'STREAM_UNAVAILABLE' })
    const remedy = /: (drop publication .*\))\. Until/s.exec((refused as Error).message)?.[1]
    await scene.pool.query(remedy as string)
    const reader = scene.work('mirror')
    await reader.worker.start()
    await reader.saw('streaming')
  })

  test('a subscription keeps its engine', async () => {
    await using scene = await streamScene(server.url)
    await scene.work('mirror', { engine: 'queue' }).worker.start()
    await expect(scene.work('mirror').worker.start()).rejects.toMatchObject({
      code: 'SUBSCRIPTION_CONFLICT',
      message: expect.stringContaining("its engine is 'queue'"),
    })
  })
})
