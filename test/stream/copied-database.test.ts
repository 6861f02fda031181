import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bePatient, comes } from '../support/patience.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { type StreamServer, sceneIn, startStreamServer, stopReader, streamScene, VERSIONS } from './scene.ts'

bePatient()

describe.each(VERSIONS)('on PostgreSQL %i', (version) => {
  let server: StreamServer
  beforeAll(async () => {
    server = await startStreamServer(version)
  })
  afterAll(() => server[Symbol.asyncDispose]())

  /** Another database of the same server. */
  function urlOf(database: string): string {
    const url = new URL(server.url)
    url.pathname = `/${database}`
    return url.href
  }

  test('a copy of a database leaves the slot of its original alone, and both go on', async () => {
    const admin = sturdyPool({ connectionString: server.url, max: 1 })
    await admin.query('create database original')
    await using original = await streamScene(urlOf('original'))
    const first = original.work('mirror')
    await first.worker.start()
    await first.saw('streaming')
    await original.place('a')
    await first.handled(1)
    await stopReader(first, original)
    const [slot] = await original.slots()
    await comes('the database is copied, while nobody is in it', async () => {
      await admin.query(
        `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = 'original'`,
      )
      return admin.query('create database duplicate template original').then(
        () => true,
        () => false,
      )
    })
    await admin.end()

    const again = original.work('mirror')
    await again.worker.start()
    await again.saw('streaming')
    await using copy = sceneIn(sturdyPool({ connectionString: urlOf('duplicate') }), original.schema)
    const there = copy.work('mirror')
    await there.worker.start()
    await there.saw('streaming')
    await original.place('b', 'c')
    await copy.place('d')
    await again.handled(2)
    await there.handled(1)

    expect(there.told).toContainEqual({ kind: 'streamGap', subscription: 'mirror', reason: 'slot-replaced' })
    expect(again.told.map(({ kind }) => kind)).not.toContain('streamGap')
    expect(await original.slots()).toMatchObject([{ slot_name: slot?.['slot_name'], active: true }])
    expect(await copy.slots()).toMatchObject([{ database: 'duplicate', active: true }])
  })
})
