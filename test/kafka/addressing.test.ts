import { describe, expect, test } from 'vitest'
import type { OutboxEvent } from '../../src/index.ts'
import { brokerError, event, FakeBroker, kinds, never, numbered, sessionOf, values } from './support.ts'

describe('events that cannot be addressed', () => {
  test.each([
    ['no topic', { topic: { Other: 'other' } }],
    ['a topic that Kafka cannot have', { topic: () => 'a b' }],
    ['a function that throws', { topic: () => JSON.parse('{') as string }],
  ])('an event with %s is refused for good', async (_, options) => {
    const broker = new FakeBroker()
    const [outcome] = await sessionOf(broker, options).send([event()], never)
    expect(outcome).toMatchObject({ kind: 'failed', failure: { code: 'NO_TOPIC' }, retry: { kind: 'never' } })
    expect(broker.requests).toEqual([])
  })

  test.each([
    [undefined, 'undefined'],
    [7, '7'],
    [null, 'null'],
  ])(
    'an event whose key is %s is refused for good, and what does not stand behind it is sent',
    async (key, found) => {
      const broker = new FakeBroker()
      const keyOf = ({ aggregateId }: OutboxEvent): string =>
        aggregateId === 'a1' ? (key as never) : aggregateId
      const events = numbered(4, (n) => ({ eventId: `e${n}`, orderingKey: n === 2 ? 'k1' : `k${n}` }))
      const outcomes = await sessionOf(broker, { key: keyOf }).send(events, never)
      expect(kinds(outcomes)).toEqual(['handled', 'failed', 'interrupted', 'handled'])
      expect(outcomes[1]).toMatchObject({
        failure: {
          code: 'NO_KEY',
          message: expect.stringMatching(new RegExp(`returned ${found},.*event e1`)),
        },
        retry: { kind: 'never' },
      })
      expect(values(broker)).toEqual(['{"n":0}', '{"n":3}'])
    },
  )

  test('an event that cannot be addressed is not refused before one of its key that was not sent', async () => {
    const broker = new FakeBroker()
    broker.answer = () => {
      throw brokerError(29, 'TOPIC_AUTHORIZATION_FAILED')
    }
    const topic = ({ aggregateId }: OutboxEvent): string => (aggregateId === 'a1' ? 'a b' : 'there')
    const outcomes = await sessionOf(broker, { topic }).send(
      numbered(2, () => ({ orderingKey: 'k' })),
      never,
    )
    expect(kinds(outcomes)).toEqual(['failed', 'interrupted'])
    expect(outcomes[0]).toMatchObject({ failure: { code: 'TOPIC_AUTHORIZATION_FAILED' } })
  })
})
