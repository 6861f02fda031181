import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { NonRetryableError } from '../../src/index.ts'
import { fixed } from '../../src/settle/backoff.ts'
import { bePatient, comes } from '../support/patience.ts'
import { numbersOf, type StreamServer, startStreamServer, streamScene, VERSIONS } from './scene.ts'

bePatient()

describe.each(VERSIONS)('on PostgreSQL %i', (version) => {
  let server: StreamServer
  beforeAll(async () => {
    server = await startStreamServer(version)
  })
  afterAll(() => server[Symbol.asyncDispose]())

  test('events arrive as they were published, in the order of their commits, and leave no delivery behind', async () => {
    await using scene = await streamScene(server.url)
    const reader = scene.work('mirror')
    await reader.worker.start()
    await reader.saw('streaming')
    await scene.place('a', 'b', 'c')
    await scene.outbox.inTransaction(scene.pool, (tx) =>
      scene.outbox.publish(tx, 'OrderPaid', {
        aggregateId: 'ü-字',
        payload: { n: 4 },
        headers: { ownerId: '7' },
        orderingKey: 'schlüssel',
      }),
    )
    await reader.handled(4)
    expect(numbersOf(reader.events)).toEqual([1, 2, 3, 4])
    const { rows } = await scene.pool.query(
      `select event_id, id, created_at from ${scene.schema}.outbox_event order by id desc limit 1`,
    )
    expect(reader.events[3]).toMatchObject({
      eventId: rows[0].event_id,
      position: rows[0].id,
      stream: 'shop.order',
      type: 'OrderPaid',
      aggregateType: 'order',
      aggregateId: 'ü-字',
      orderingKey: 'schlüssel',
      sequence: null,
      headers: expect.objectContaining({ ownerId: '7' }),
    })
    expect(
      Math.abs((reader.events[3]?.createdAt.getTime() ?? 0) - rows[0].created_at.getTime()),
    ).toBeLessThan(2)
    const left = await scene.pool.query(`select count(*)::int as n from ${scene.schema}.outbox_delivery`)
    expect(left.rows).toEqual([{ n: 0 }])
  })

  test('an event that fails is a delivery with its retry, and the stream goes on', async () => {
    await using scene = await streamScene(server.url)
    let failures = 0
    const reader = scene.work('mirror', { retry: fixed('50ms'), maxAttempts: 3 }, (event) => {
      const { n } = event.payload as { n: number }
      if (n === 2 && failures < 2) {
        failures += 1
        throw new Error('not yet')
      }
      if (n === 4) throw new NonRetryableError('never')
    })
    await reader.worker.start()
    await reader.saw('streaming')
    await scene.place('a', 'b', 'c', 'd', 'e')
    await reader.handled(4)
    await reader.saw('dead')
    const { rows } = await scene.pool.query(
      `select d.status, d.attempt_count, jsonb_array_length(d.attempt_history) as failures
         from ${scene.schema}.outbox_delivery d order by d.id`,
    )
    expect(rows).toEqual([
      { status: 'DONE', attempt_count: 3, failures: 2 },
      { status: 'DEAD', attempt_count: 1, failures: 1 },
    ])
    expect(await scene.outbox.deadLetters.count({})).toBe(1)
  })

  test('U4 of one aggregate nothing passes an event that is tried again, others go on', async () => {
    await using scene = await streamScene(server.url)
    let failures = 0
    const reader = scene.work('ordered', { order: 'aggregate', retry: fixed('100ms') }, (event) => {
      if ((event.payload as { n: number }).n === 1 && failures < 3) {
        failures += 1
        throw new Error('not yet')
      }
    })
    await reader.worker.start()
    await reader.saw('streaming')
    for (let round = 0; round < 20; round += 1) await scene.place('a', 'b')
    await reader.handled(40)
    const of = (id: string) => numbersOf(reader.events.filter((event) => event.aggregateId === id))
    expect(of('a').slice(3)).toEqual(Array.from({ length: 20 }, (_, index) => index * 2 + 1))
    expect(of('b')).toEqual(Array.from({ length: 20 }, (_, index) => index * 2 + 2))
    await comes('nothing is open', async () => {
      const { rows } = await scene.pool.query(
        `select count(*)::int as n from ${scene.schema}.outbox_delivery where status <> 'DONE'`,
      )
      return rows[0].n === 0
    })
  })
})
