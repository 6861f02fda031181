import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineEvents, relay } from '../../src/index.ts'
import { kafka, sequenceChecker } from '../../src/kafka/index.ts'
import { kafkaAvailable } from '../support/kafka/jars.ts'
import { bePatient, comes } from '../support/patience.ts'
import { RELAY_PRODUCERS, TestKafka } from './kafka-support.ts'
import { openSystem, type System } from './support.ts'

bePatient()

const events = defineEvents({
  ThingHappened: {
    stream: 'things',
    aggregate: 'thing',
    sequence: true,
    schema: z.object({ n: z.number(), text: z.string().optional() }),
  },
  NoteTaken: { stream: 'notes', aggregate: 'note', schema: z.object({ text: z.string() }) },
})
type Things = System<typeof events>

describe.skipIf(!kafkaAvailable()).each(RELAY_PRODUCERS)(
  'a relay and a Kafka that fails, by its %s',
  (made) => {
    let broker: TestKafka

    beforeAll(async () => {
      broker = await TestKafka.start()
    })
    afterAll(async () => {
      await broker[Symbol.asyncDispose]()
    })

    test('I7 E12 a broker that is killed in mid-stream and comes back: nothing is lost, no attempt is spent, order holds', async () => {
      await broker.createTopics(['things'])
      await using system = await openSystem(events)
      await system.run([relay('to-kafka', { via: kafka({ producer: broker[made] }), order: 'aggregate' })])
      await publishThings(system, 0, 200)
      await comes('some are sent', async () => (await system.count('outbox_delivery', "status = 'DONE'")) > 0)
      await broker.server.kill()
      await publishThings(system, 200, 400)
      await comes('the outage is told', () => outages(system).length > 0)
      const waiting = await system.count('outbox_delivery', "status <> 'DONE'")
      expect(waiting).toBeGreaterThanOrEqual(200)
      // Not afterwards: where one partition is there again before the others, this outage ends and another one begins.
      expect(outages(system)).toHaveLength(1)
      await broker.server.restart()
      await system.untilSettled()
      const attempts = await system.rows<{ status: string; attempt_count: number }>(
        'select distinct status, attempt_count from outbox_delivery',
      )
      expect(attempts).toEqual([{ status: 'DONE', attempt_count: 1 }])
      const seen = await broker.read('things')
      const ids = new Set(seen.map(({ headers }) => headers['eventId']))
      expect(ids.size).toBe(400)
      const checker = sequenceChecker({ fromBeginning: true })
      for (const { headers, key } of seen) {
        checker.check({ eventId: '', orderingKey: key ?? '', sequence: Number(headers['sequence']) })
      }
      // What was written and not confirmed is written again: repeats, but no gap.
      expect(checker.counts).toMatchObject({ next: 400, gap: 0, repeat: seen.length - 400 })
    })

    test('E6 a worker that stops while Kafka is down gives everything back with its attempt', async () => {
      await broker.createTopics(['things-later'])
      await using system = await openSystem(events)
      const via = kafka({ producer: broker[made], topic: 'things-later' })
      const worker = await system.run([relay('to-kafka', { via })])
      await broker.server.kill()
      await publishThings(system, 0, 20)
      await comes('the outage is told', () => outages(system).length > 0)
      await worker.stop({ drainMs: 0 })
      expect(
        await system.rows('select distinct status, attempt_count, last_error_code from outbox_delivery'),
      ).toEqual([{ status: 'PENDING', attempt_count: 0, last_error_code: null }])
      await broker.server.restart()
      await system.run([relay('to-kafka', { via })])
      await system.untilSettled()
      expect(await system.count('outbox_delivery', "status = 'DONE'")).toBe(20)
    })

    test('D1 a message that is too large dies at once, and those that were sent with it are delivered', async () => {
      await broker.createTopics(['small'], { 'max.message.bytes': '20000' })
      await using system = await openSystem(events)
      await publishThings(system, 0, 5)
      const tooLarge = await system.publish('ThingHappened', {
        aggregateId: 'large',
        payload: { n: 1, text: 'x'.repeat(30_000) },
      })
      await publishThings(system, 5, 10)
      const via = kafka({ producer: broker[made], topic: 'small' })
      await system.run([relay('to-kafka', { via, startFrom: 'beginning' })])
      await system.untilSettled()
      expect(await system.delivery(tooLarge)).toMatchObject({
        status: 'DEAD',
        attempt_count: 1,
        last_error_code: 'MESSAGE_TOO_LARGE',
      })
      expect(await system.count('outbox_delivery', "status = 'DONE' and attempt_count = 1")).toBe(10)
      const seen = await broker.read('small')
      expect(new Set(seen.map(({ headers }) => headers['eventId'])).size).toBe(10)
    })

    test('D1 D3 a topic that does not exist: its events die, others go on, and a retry after it was made delivers them', async () => {
      await broker.createTopics(['known'])
      await using system = await openSystem(events)
      await publishThings(system, 0, 5)
      const note = await system.publish('NoteTaken', { aggregateId: 'n', payload: { text: 'hello' } })
      await publishThings(system, 5, 10)
      const topic = { ThingHappened: 'known', NoteTaken: 'made-later' }
      const via = kafka({ producer: broker[made], topic })
      await system.run([relay('to-kafka', { via, startFrom: 'beginning' })])
      await system.untilSettled()
      expect(await system.delivery(note)).toMatchObject({
        status: 'DEAD',
        attempt_count: 1,
        last_error_code: 'UNKNOWN_TOPIC_OR_PARTITION',
      })
      expect(await system.count('outbox_delivery', "status = 'DONE'")).toBe(10)
      await broker.createTopics(['made-later'])
      const [letter] = await system.outbox.deadLetters.list()
      await system.outbox.deadLetters.retry(letter?.id ?? '', { operator: 'kim' })
      await system.untilStatus(note, 'DONE')
      expect(await broker.read('made-later')).toHaveLength(1)
    })

    test('I6 what fails in part is settled in part, and nothing that was sent afterwards is dropped as a repetition', async () => {
      await broker.createTopics(['good'], {}, 1)
      await broker.createTopics(['tiny'], { 'max.message.bytes': '2000' }, 1)
      await using system = await openSystem(events)
      const topic = { ThingHappened: 'good', NoteTaken: 'tiny' }
      const via = kafka({ producer: broker[made], topic })
      await system.outbox.inTransaction(system.pool, async (tx) => {
        for (let round = 0; round < 3; round += 1) {
          await system.outbox.publish(tx, 'ThingHappened', {
            aggregateId: `k${round}`,
            payload: { n: round },
          })
          const text = round === 1 ? 'x'.repeat(5_000) : 'short'
          await system.outbox.publish(tx, 'NoteTaken', { aggregateId: `n${round}`, payload: { text } })
        }
      })
      await system.run([relay('to-kafka', { via, startFrom: 'beginning' })])
      await system.untilSettled()
      await publishThings(system, 0, 3)
      await system.untilSettled()
      expect(
        await system.rows(
          'select status, last_error_code code, count(*)::int from outbox_delivery group by 1, 2 order by 1',
        ),
      ).toEqual([
        { status: 'DEAD', code: 'MESSAGE_TOO_LARGE', count: 1 },
        { status: 'DONE', code: null, count: 8 },
      ])
      const good = await broker.read('good')
      expect(new Set(good.map(({ headers }) => headers['eventId'])).size).toBe(6)
      const tiny = await broker.read('tiny')
      expect(new Set(tiny.map(({ key }) => key))).toEqual(new Set(['n0', 'n2']))
    })
  },
)

async function publishThings(system: Things, from: number, to: number): Promise<void> {
  await system.outbox.inTransaction(system.pool, async (tx) => {
    const inputs = Array.from({ length: to - from }, (_, index) => ({
      type: 'ThingHappened' as const,
      aggregateId: `k-${(from + index) % 10}`,
      payload: { n: from + index },
    }))
    await system.outbox.publishAll(tx, inputs)
  })
}

function outages(system: Things): readonly unknown[] {
  return system.toldOf('error').filter(({ during }) => during === 'send')
}
