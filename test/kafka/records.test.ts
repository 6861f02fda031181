import { describe, expect, test } from 'vitest'
import { defineEvents, type OutboxEvent } from '../../src/index.ts'
import { readRecord } from '../../src/kafka/read-record.ts'
import { formatProblems, keyOf, type RecordFormat, toMessage } from '../../src/kafka/record.ts'
import { topicOf, topicProblems } from '../../src/kafka/topic.ts'
import { event } from './support.ts'

const catalogue = defineEvents({ OrderPlaced: { stream: 'shop.order', aggregate: 'order', version: 2 } })
const place = { topic: 'shop.order', partition: 0 }

describe('the topic of an event', () => {
  test.each([
    ['{stream}', 'shop.order'],
    ['ivm.events.{aggregateType}', 'ivm.events.order'],
    ['ledger-events', 'ledger-events'],
    ['{stream}-{type}', 'shop.order-OrderPlaced'],
    [{ OrderPlaced: 'placed' }, 'placed'],
    [{ OrderPaid: 'paid', '*': 'other.{aggregateType}' }, 'other.order'],
    [{ OrderPaid: 'paid' }, null],
    [({ stream }: { readonly stream: string }) => stream.toUpperCase(), 'SHOP.ORDER'],
  ])('by %j is %s', (route, topic) => {
    expect(topicOf(route)(event())).toBe(topic)
  })

  test('is refused where Kafka could not have it', () => {
    expect(topicProblems('a b')).toEqual([expect.stringContaining('must be 1 to 249 letters')])
    expect(topicProblems('{aggregate}')).toEqual([
      'topic: there is no {aggregate}; known are {stream}, {aggregateType}, {type}',
    ])
    expect(topicProblems({})).toHaveLength(1)
    expect(topicProblems(7)).toHaveLength(1)
    expect(topicProblems({ A: 'fine', B: '..' })).toEqual([expect.stringContaining('topic of "B"')])
  })
})

describe('the key of a message', () => {
  test('is the aggregate id, or the ordering key where the event has one of its own', () => {
    expect(keyOf(event())).toBe('o-1')
    expect(keyOf(event({ orderingKey: 'acc-1' }))).toBe('acc-1')
  })
})

describe('a message and the event that is read from it', () => {
  const attributes = { ownerId: 'u-1', correlationId: 'c-1', tracestate: 'a=b' }
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const formats: readonly RecordFormat[] = [
    'payload',
    'envelope',
    { envelope: { type: 'eventType', occurredAt: 'timestamp', schemaVersion: false, aggregateId: true } },
    { cloudEvents: 'binary', source: '/shop' },
    { cloudEvents: 'structured', source: '/shop' },
  ]

  function sentAndRead(given: OutboxEvent, format: RecordFormat): OutboxEvent {
    const { key, value, headers } = toMessage(given, keyOf(given), format)
    const envelope = format === 'envelope' ? {} : ((format as { envelope?: object }).envelope ?? null)
    const bytes = Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, Buffer.from(text)]))
    const message = {
      key: Buffer.from(key),
      value: Buffer.from(value),
      headers: bytes,
      offset: '42',
      timestamp: '1777629601000',
    }
    return readRecord(message, place, { catalogue, envelope })
  }

  test.each(formats)('are the same in the format %j', (format) => {
    const given = event({ headers: { ...attributes, traceparent } })
    expect(sentAndRead(given, format)).toEqual({ ...given, position: '42' })
    const keyed = { ...given, orderingKey: 'acc-1' }
    expect(sentAndRead(keyed, format)).toEqual({ ...keyed, position: '42' })
  })

  test('an attribute of the domain cannot pass for what is the event’s own', () => {
    const { headers } = toMessage(event({ headers: { eventType: 'Forged', stream: 'x' } }), 'k', 'payload')
    expect(headers).toMatchObject({ eventType: 'OrderPlaced', stream: 'shop.order' })
  })

  const awkward = {
    sequence: '7',
    orderingKey: 'x',
    stream: 'another',
    aggregateId: 'a-9',
    id: 'i-1',
    headers: '{}',
    'content-type': 'application/cloudevents+json',
    ce_specversion: '1.0',
    ce_id: 'i-2',
    'attribute.id': 'i-3',
    'attribute.attribute.sequence': '8',
    'attribute.note': 'n',
  }

  test.each(formats)(
    'attributes with names of the message’s own come back as they were in the format %j',
    (format) => {
      for (const given of [event({ sequence: null }), event({ sequence: 3, orderingKey: 'acc-1' })]) {
        const { sequence, orderingKey, headers, stream, aggregateId } = sentAndRead(
          { ...given, headers: awkward },
          format,
        )
        expect({ sequence, orderingKey, stream, aggregateId }).toEqual({
          sequence: given.sequence,
          orderingKey: given.orderingKey,
          stream: given.stream,
          aggregateId: given.aggregateId,
        })
        expect(headers).toMatchObject(awkward)
      }
    },
  )

  test('what Debezium’s outbox router writes is an event too', () => {
    const message = {
      key: 'o-1',
      value: '{"amount":1}',
      headers: { id: '01890a5d-ac96-774b-bcce-b302099a8057', eventType: 'OrderPlaced' },
      offset: '5',
      timestamp: '1777629600000',
    }
    expect(readRecord(message, place, { catalogue, envelope: null })).toEqual(
      event({
        position: '5',
        schemaVersion: 1,
        sequence: null,
        createdAt: new Date(1_777_629_600_000),
        occurredAt: new Date(1_777_629_600_000),
      }),
    )
  })

  test('what the connector of `commitpost debezium config` adds is read too: the event’s own headers, key and sequence', () => {
    const message = {
      key: 'o-1',
      value: '{"amount":1}',
      headers: {
        id: '01890a5d-ac96-774b-bcce-b302099a8057',
        eventId: '01890a5d-ac96-774b-bcce-b302099a8057',
        eventType: 'OrderPlaced',
        schemaVersion: '2',
        sequence: '3',
        stream: 'shop.order',
        aggregateType: 'order',
        orderingKey: 'account:1',
        occurredAt: '2026-05-01T10:00:00.000000Z',
        headers: '{"traceparent": "00-1-2-01", "ownerId": "o"}',
      },
      offset: '5',
      timestamp: '1777629601000',
    }
    expect(readRecord(message, place, { catalogue, envelope: null })).toEqual(
      event({
        position: '5',
        orderingKey: 'account:1',
        headers: { traceparent: '00-1-2-01', ownerId: 'o' },
      }),
    )
  })

  test('a header of that name that is none of Debezium’s stays what it is', () => {
    const { headers, ...rest } = toMessage(event({ headers: { headers: '{"a":"b"}' } }), 'k', 'payload')
    const read = readRecord({ ...rest, headers, offset: '1' }, place, { catalogue, envelope: null })
    expect(read.headers).toEqual({ headers: '{"a":"b"}' })
  })

  test.each([
    ['its value is no JSON', { value: '{', headers: {} }],
    ['it has no event id', { value: '{}', headers: { eventType: 'OrderPlaced' } }],
    ['it has no event type', { value: '{}', headers: { id: '01890a5d-ac96-774b-bcce-b302099a8057' } }],
    ['must be a JSON object', { value: '[]', headers: { 'content-type': 'application/cloudevents+json' } }],
  ])('is refused where %s', (why, message) => {
    const read = (): unknown => readRecord({ offset: '9', ...message }, place, { catalogue, envelope: null })
    expect(read).toThrow(/offset 9 of shop.order, partition 0/)
    expect(read).toThrow(why)
  })

  test('formats that cannot be are refused', () => {
    const problems = (format: unknown): readonly unknown[] =>
      formatProblems(format).filter((each) => each !== null)
    expect(problems('avro')).toHaveLength(1)
    expect(problems({ cloudEvents: 'binary' })).toEqual([expect.stringContaining('source')])
    expect(problems({ cloudEvents: 'both', source: '/' })).toHaveLength(1)
    expect(problems({ envelop: {} })).toHaveLength(2)
    for (const format of formats) expect(problems(format)).toEqual([])
  })
})
