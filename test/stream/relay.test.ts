import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fixed } from '../../src/index.ts'
import { kafka } from '../../src/kafka/index.ts'
import { brokerError, FakeBroker, unreachable } from '../kafka/support.ts'
import { bePatient, comes } from '../support/patience.ts'
import { type StreamScene, type StreamServer, startStreamServer, streamScene } from './scene.ts'

bePatient()

let server: StreamServer
beforeAll(async () => {
  server = await startStreamServer(18)
})
afterAll(() => server[Symbol.asyncDispose]())

/** What arrived of each aggregate, in the order in which it did. */
function arrived(broker: FakeBroker): Readonly<Record<string, readonly number[]>> {
  const byKey: Record<string, number[]> = {}
  for (const { key, value } of broker.written) {
    const numbers = byKey[key] ?? []
    byKey[key] = numbers
    numbers.push((JSON.parse(value) as { readonly n: number }).n)
  }
  return byKey
}

async function deliveries(scene: StreamScene): Promise<readonly unknown[]> {
  const { rows } = await scene.pool.query(
    `select status, attempt_count from ${scene.schema}.outbox_delivery order by id`,
  )
  return rows
}

/** Refuses requests with a message of this number: it is too large. */
const refusing =
  (n: number): FakeBroker['answer'] =>
  (batch) => {
    if (batch.some(({ messages }) => messages.some(({ value }) => value === `{"n":${n}}`))) {
      throw brokerError(10, 'MESSAGE_TOO_LARGE')
    }
  }

describe('a relay that reads the log', () => {
  test('E4 I1 L9 hands many events over at once, several of a key together, in order, and leaves no delivery behind', async () => {
    await using scene = await streamScene(server.url)
    const broker = new FakeBroker()
    const reader = scene.relay('to-kafka', {
      via: kafka({ producer: broker.producer }),
      order: 'aggregate',
    })
    await reader.worker.start()
    await reader.saw('streaming')
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    broker.answer = () => held
    for (let round = 0; round < 5; round += 1) {
      await scene.place(...Array.from({ length: 100 }, (_, n) => (n % 2 === 0 ? 'a' : 'b')))
    }
    release()
    await reader.handled(500)
    const all = Array.from({ length: 500 }, (_, n) => n + 1)
    expect(arrived(broker)).toEqual({ a: all.filter((n) => n % 2 === 1), b: all.filter((n) => n % 2 === 0) })
    // There are two keys: one at a time of each would be two.
    expect(Math.max(...broker.requests)).toBeGreaterThan(2)
    expect(await deliveries(scene)).toEqual([])
  })

  test.each(['block', 'continue'] as const)(
    'of a key nothing passes an event that Kafka refuses: %s',
    async (onDead) => {
      await using scene = await streamScene(server.url)
      const broker = new FakeBroker()
      broker.answer = refusing(3)
      const reader = scene.relay('to-kafka', {
        via: kafka({ producer: broker.producer }),
        order: 'aggregate',
        onDead,
      })
      await reader.worker.start()
      await reader.saw('streaming')
      await scene.place('a', 'b', 'a', 'b', 'a', 'a', 'b')
      await reader.saw('dead')
      await scene.place('a', 'b')
      await comes('the others', () => (arrived(broker)['b']?.length ?? 0) === 4)
      if (onDead === 'continue') await comes('those behind', () => (arrived(broker)['a']?.length ?? 0) === 4)
      expect(arrived(broker)).toEqual({ a: onDead === 'block' ? [1] : [1, 5, 6, 8], b: [2, 4, 7, 9] })
      expect(await scene.outbox.deadLetters.count()).toBe(1)
    },
  )

  test('without order, what stood behind an event that Kafka refuses arrives all the same', async () => {
    await using scene = await streamScene(server.url)
    const broker = new FakeBroker()
    broker.answer = refusing(2)
    const reader = scene.relay('to-kafka', { via: kafka({ producer: broker.producer }) })
    await reader.worker.start()
    await reader.saw('streaming')
    await scene.place('a', 'a', 'a', 'a')
    await reader.saw('dead')
    await comes('the others', () => broker.written.length === 3)
    const { lsn } = await scene.progress()
    await comes('the log goes on', async () => (await scene.progress())['lsn'] !== lsn)
    expect(arrived(broker)['a']?.toSorted((one, other) => one - other)).toEqual([1, 3, 4])
  })

  test('E12 while Kafka is down no attempt is spent and the log is given up past its budget; it heals by itself', async () => {
    await using scene = await streamScene(server.url)
    const broker = new FakeBroker()
    const reader = scene.relay('to-kafka', {
      via: kafka({ producer: broker.producer }),
      order: 'aggregate',
      walBudgetBytes: 16 * 1_024 * 1_024,
      retry: fixed(20),
    })
    await reader.worker.start()
    await reader.saw('streaming')
    await scene.place('a', 'b')
    await reader.handled(2)
    broker.answer = () => Promise.reject(unreachable())
    await scene.place('a', 'b')
    await reader.saw('error')
    await scene.pool.query(
      `create table ${scene.schema}.load as select n, repeat('x', 1000) as t from generate_series(1, 30000) n`,
    )
    await comes('the server keeps nothing more', async () => (await scene.slots()).length === 0)
    await scene.place('a', 'b')
    broker.answer = () => undefined
    await reader.saw('streamRecovered')
    await reader.saw('streaming', 2)
    await scene.place('a', 'b')
    await comes('all', () => new Set(broker.written.map(({ value }) => value)).size === 8)
    expect(await deliveries(scene)).toEqual([])
    const { holds } = await scene.outbox.proof.verify()
    expect(holds).toBe(true)
  })

  test('E6 one that stops while Kafka is down gives everything back, and the next one delivers it', async () => {
    await using scene = await streamScene(server.url)
    const broker = new FakeBroker()
    const options = { via: kafka({ producer: broker.producer }), order: 'aggregate' } as const
    const first = scene.relay('to-kafka', options)
    await first.worker.start()
    await first.saw('streaming')
    broker.answer = () => Promise.reject(unreachable())
    await scene.place('a', 'b', 'a')
    await first.saw('error')
    await first.worker.stop({ drainMs: 0 })
    expect(broker.open).toBe(0)
    broker.answer = () => undefined
    const second = scene.relay('to-kafka', options)
    await second.worker.start()
    await second.handled(3)
    expect(arrived(broker)).toEqual({ a: [1, 3], b: [2] })
    expect(await deliveries(scene)).toEqual([])
  })
})
