import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { TransportSession } from '../../src/dispatch/transport.ts'
import { defineEvents, type OutboxEvent, relay } from '../../src/index.ts'
import { type KafkaProducer, kafka } from '../../src/kafka/index.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { event } from '../kafka/support.ts'
import { kafkaAvailable } from '../support/kafka/jars.ts'
import { bePatient, comes } from '../support/patience.ts'
import { judged, TestCluster } from './kafka-cluster-support.ts'
import { RELAY_PRODUCERS } from './kafka-support.ts'
import { openSystem, type System } from './support.ts'
import { TroubledProducers } from './troubled-producer.ts'

bePatient()

const events = defineEvents({
  ThingHappened: {
    stream: 'things',
    aggregate: 'thing',
    sequence: true,
    schema: z.object({ n: z.number() }),
  },
})
type Things = System<typeof events>

const never = new AbortController().signal
/** Led by each of them, and with replicas on the others. */
const EVERYWHERE = [
  [1, 2, 3],
  [2, 3, 1],
  [3, 1, 2],
  [3, 2, 1],
]
const AT_LEAST_TWO = { 'min.insync.replicas': '2' }

describe.skipIf(!kafkaAvailable())('relays and a Kafka of three brokers', () => {
  let kafkas: TestCluster

  beforeAll(async () => {
    kafkas = await TestCluster.start()
  })
  afterAll(async () => {
    await kafkas[Symbol.asyncDispose]()
  })

  // kafkajs notes by broker what was answered. When it sends again after a leader has moved to a broker that has answered
  // already, it takes that answer for one to the partition that has come there.
  test('naive: kafkajs confirms messages for a leader that moved, which it has sent to nobody', async () => {
    const topic = 'moved-naive'
    await kafkas.createTopic(topic, [
      [1, 2],
      [2, 1],
    ])
    const producer = kafkas.producer()
    await producer.connect()
    const confirmed: string[] = []
    const send = async (values: readonly string[]): Promise<void> => {
      const messages = values.map((value, partition) => ({ key: 'k', value, partition }))
      await producer.sendBatch({ topicMessages: [{ topic, messages }] })
      confirmed.push(...values)
    }
    let missing: readonly string[] = []
    await send(['first 0', 'second 0'])
    // It may be that the broker has not yet learnt that it leads no longer, and takes the message.
    for (let move = 1; move <= 10 && missing.length === 0; move += 1) {
      await kafkas.move(topic, 1, move % 2 === 1 ? [1, 2] : [2, 1])
      await send([`first ${move}`, `second ${move}`])
      const there = new Set((await kafkas.read(topic)).map(({ value }) => value))
      missing = confirmed.filter((value) => !there.has(value))
    }
    await producer.disconnect()
    expect(missing).toEqual([expect.stringMatching(/^second/)])
  })

  test.each(RELAY_PRODUCERS)(
    'I6 real: leaders move, and what the transport confirms is there, by its %s',
    async (made) => {
      const topic = `moved-${made}`
      await kafkas.createTopic(topic, [
        [1, 2],
        [2, 1],
        [3, 1],
      ])
      const session = openSession(kafkas[made], topic)
      const first = await session.send(things(0, 30), never)
      await kafkas.move(topic, 1, [1, 2])
      await kafkas.move(topic, 0, [3, 2])
      const second = await session.send(things(30, 60), never)
      await session.close()
      expect(new Set([...first, ...second].map(({ kind }) => kind))).toEqual(new Set(['handled']))
      const { distinct, repeats, gaps } = judged(await kafkas.read(topic))
      expect({ distinct, gaps }).toEqual({ distinct: 60, gaps: 0 })
      // A leader that refuses has written nothing, and ours knows which one refused.
      if (made === 'relayProducer') expect(repeats).toBe(0)
    },
  )

  // kafkajs tells only of what was answered, and here it asks for the leaders before any of its messages is.
  test('I6 real: a leader closes the connection and leads no longer before another has answered, and what the transport confirms is there', async () => {
    const topic = 'closed'
    await kafkas.createTopic(topic, [
      [1, 2],
      [2, 1],
    ])
    await kafkas.createTopic('beside', [[3, 1]])
    const producers = new TroubledProducers(kafkas.cluster.bootstrap)
    const session = openSession(producers.make, '{stream}')
    let count = 0
    const sendTen = async (): Promise<void> => {
      const ten = things(count, count + 10).map((each) => ({ ...each, stream: topic }))
      expect((await session.send(ten, never)).map(({ kind }) => kind)).toEqual(Array(10).fill('handled'))
      count += 10
    }
    // Whom kafkajs asks for the leaders is left to chance: the one that is slow is too late for this.
    for (let time = 1; time <= 4; time += 1) {
      await kafkas.move(topic, 1, [2, 1])
      await sendTen()
      // So that there is a connection to the third, which can be asked.
      await session.send([event({ stream: 'beside' })], never)
      producers.meet({
        closing: kafkas.cluster.broker(2).bootstrap,
        before: () => kafkas.move(topic, 1, [1, 2]),
        slow: kafkas.cluster.broker(1).bootstrap,
      })
      await sendTen()
      const { distinct, gaps } = judged(await kafkas.read(topic))
      expect({ distinct, gaps }).toEqual({ distinct: count, gaps: 0 })
    }
    await session.close()
  })

  test('I7 E12 a leader that is killed in mid-send and comes back: nothing is lost, no attempt is spent, order holds', async () => {
    await using system = await openSystem(events)
    await createTopics(kafkas, 'killed', EVERYWHERE, AT_LEAST_TWO)
    await system.run(RELAY_PRODUCERS.map((made) => relayTo(kafkas, made, `killed-${made}`)))
    await using feed = feedOf(system)
    await feed.pass()
    await kafkas.cluster.broker(3).kill()
    // The others lead on without it.
    await feed.pass()
    await kafkas.cluster.broker(3).restart()
    for (const made of RELAY_PRODUCERS) await kafkas.untilLedBy(`killed-${made}`, [1, 2, 3, 3])
    await feed.pass()
    const count = await feed.stop()
    await expectAll(system, count)
    for (const made of RELAY_PRODUCERS) await expectInTopic(kafkas, `killed-${made}`, count)
  })

  test('I7 a leader that is shut down: others lead on, and what has not enough replicas without it waits', async () => {
    await using system = await openSystem(events)
    await createTopics(kafkas, 'led', EVERYWHERE, AT_LEAST_TWO)
    // The first broker leads one that can do without the third, and one that cannot.
    const short = [
      [1, 2],
      [1, 3],
      [2, 1],
    ]
    await createTopics(kafkas, 'short', short, AT_LEAST_TWO)
    const topics = RELAY_PRODUCERS.flatMap((made) => [`led-${made}`, `short-${made}`] as const)
    await system.run(RELAY_PRODUCERS.map((made) => relayTo(kafkas, made, `led-${made}`)))
    await using feed = feedOf(system)
    await feed.pass()
    await kafkas.cluster.broker(3).shutDown()
    await system.run(RELAY_PRODUCERS.map((made) => relayTo(kafkas, made, `short-${made}`)))
    await feed.pass('led')
    const count = await feed.stop()
    await comes('all that can go on is sent', async () => (await waiting(system, 'led')) === 0)
    for (const made of RELAY_PRODUCERS) {
      await comes(`short-${made} says that it waits`, () => outages(system).includes(`short-${made}`))
      expect(await waiting(system, `short-${made}`)).toBeGreaterThan(0)
    }
    await kafkas.cluster.broker(3).restart()
    await expectAll(system, count)
    for (const topic of topics) await expectInTopic(kafkas, topic, count)
  })
})

function openSession(producer: () => KafkaProducer, topic: string): TransportSession {
  const parts = { subscription: 's', clock: systemClock, random: () => 0.5, onOutage: () => {} }
  return kafka({ producer, topic }).open(parts)
}

/** Events of ten keys, numbered. */
function things(from: number, to: number): readonly OutboxEvent[] {
  return Array.from({ length: to - from }, (_, index) => {
    const n = from + index
    const key = `k-${n % 10}`
    return event({ eventId: `e-${n}`, aggregateId: key, orderingKey: key, sequence: Math.floor(n / 10) + 1 })
  })
}

async function createTopics(
  kafkas: TestCluster,
  name: string,
  partitions: readonly (readonly number[])[],
  config: Readonly<Record<string, string>>,
): Promise<void> {
  for (const made of RELAY_PRODUCERS) await kafkas.createTopic(`${name}-${made}`, partitions, config)
}

function relayTo(
  kafkas: TestCluster,
  made: (typeof RELAY_PRODUCERS)[number],
  topic: string,
): ReturnType<typeof relay> {
  const via = kafka({ producer: kafkas[made], topic })
  return relay(topic, { via, order: 'aggregate', startFrom: 'beginning' })
}

/** What publishes on and on, until it is stopped or its test ends. */
interface Feed extends AsyncDisposable {
  /** Until what was published since now begins to be delivered to all relays whose names begin so. */
  pass(relays?: string): Promise<void>
  /** Resolves with how many events were published in all. */
  stop(): Promise<number>
}

function feedOf(system: Things): Feed {
  let published = 0
  let isOver = false
  const feeding = (async () => {
    while (!isOver) {
      await system.outbox.inTransaction(system.pool, async (tx) => {
        const inputs = Array.from({ length: 20 }, (_, index) => ({
          type: 'ThingHappened' as const,
          aggregateId: `k-${index}`,
          payload: { n: published + index },
        }))
        await system.outbox.publishAll(tx, inputs)
      })
      published += 20
      await systemClock.sleep(10)
    }
  })()
  const stop = async (): Promise<number> => {
    isOver = true
    await feeding
    return published
  }
  return {
    stop,
    async [Symbol.asyncDispose]() {
      await stop()
    },
    pass: async (relays = '') => {
      const last = await system.value<string>('select coalesce(max(id), 0) from outbox_event')
      const behind = `select count(*) from outbox_subscription s where s.name like $1 and not exists (
        select 1 from outbox_delivery d where d.subscription_id = s.id and d.id > $2 and d.status = 'DONE')`
      await comes('what was published since is delivered', async () => {
        return Number(await system.value(behind, [`${relays}%`, last])) === 0
      })
    },
  }
}

/** How much the relays whose names begin so have not delivered. */
function waiting(system: Things, relays: string): Promise<number> {
  const ofThem = `subscription_id in (select id from outbox_subscription where name like '${relays}%')`
  return system.count('outbox_delivery', `status <> 'DONE' and ${ofThem}`)
}

/** Every relay has delivered everything, at the first attempt. */
async function expectAll(system: Things, count: number): Promise<void> {
  await comes('all is delivered', async () => (await waiting(system, '')) === 0)
  const found = await system.rows(
    `select distinct d.status, d.attempt_count, count(*)::int from outbox_delivery d group by d.subscription_id, 1, 2`,
  )
  expect(found).toEqual([{ status: 'DONE', attempt_count: 1, count }])
}

/** Every event is there, in the order of its key. */
async function expectInTopic(kafkas: TestCluster, topic: string, count: number): Promise<void> {
  const { distinct, gaps, copies } = judged(await kafkas.read(topic))
  expect({ topic, distinct, gaps }).toEqual({ topic, distinct: count, gaps: 0 })
  // It is tried many times until all is written. Of ours only what was under way when the broker went may be there twice.
  if (topic.endsWith('relayProducer')) expect(copies).toBeLessThanOrEqual(2)
}

/** Which relays have told that Kafka does not take what they send. */
function outages(system: Things): readonly (string | null)[] {
  const told = system.toldOf('error').filter(({ during }) => during === 'send')
  return told.map(({ subscription }) => subscription)
}
