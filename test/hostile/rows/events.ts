import { isDeepStrictEqual } from 'node:util'
import { createOutbox } from '../../../src/index.ts'
import { borne, type Group, type Refusal, refused, wrong } from '../row.ts'
import { events as catalogue, type HostileOutbox, type Scene } from '../scene.ts'

const detail = (does: string, says: string, details: () => Record<string, unknown>): Refusal =>
  refused(does, 'INVALID_EVENT', says, (scene) => scene.publish(details()))

const input = (does: string, says: string, value: unknown): Refusal =>
  refused(`publish(tx, 'OrderPlaced', ${does})`, 'INVALID_EVENT', says, (scene) =>
    scene.inTransaction((tx) => scene.outbox.publish(tx, 'OrderPlaced', wrong(value))),
  )

const batch = (
  does: string,
  code: 'INVALID_EVENT' | 'INVALID_OPTIONS',
  says: string,
  inputs: unknown,
  options?: unknown,
): Refusal =>
  refused(`publishAll(tx, ${does})`, code, says, (scene) =>
    scene.inTransaction((tx) =>
      options === undefined
        ? scene.outbox.publishAll(tx, wrong(inputs))
        : scene.outbox.publishAll(tx, wrong(inputs), wrong(options)),
    ),
  )

const good = { type: 'OrderPlaced', aggregateId: 1, payload: {} }
const UUID = '0198c0de-0000-7000-8000-00000000000a'

const withAmbient = (scene: Scene, ambientHeaders: () => unknown): HostileOutbox =>
  createOutbox({
    store: scene.store,
    events: catalogue,
    ambientHeaders: ambientHeaders as () => object as never,
  })

const ambient = (does: string, says: string, ambientHeaders: () => unknown): Refusal =>
  refused(`ambientHeaders ${does}`, 'INVALID_EVENT', says, (scene) =>
    scene.inTransaction((tx) =>
      withAmbient(scene, ambientHeaders).publish(tx, 'OrderPlaced', { aggregateId: 1, payload: {} }),
    ),
  )

const headersOf = async (scene: Scene, id: string): Promise<unknown> => {
  const { rows } = await scene.pool.query('select headers from outbox_event where event_id = $1', [id])
  return rows[0].headers
}

export const details: Group = {
  title: 'What is said of an event',
  rows: [
    input('undefined', 'input: must be an object with aggregateId and payload, but is undefined', undefined),
    input('null', 'input: must be an object with aggregateId and payload, but is null', null),
    input("'text'", 'input: must be an object with aggregateId and payload, but is "text"', 'text'),
    input('[]', 'but is a list of 0', []),
    input('() => …', 'but is a function', () => 1),
    detail('aggregatId: misspelt', 'has no property "aggregatId"; did you mean "aggregateId"?', () => ({
      aggregatId: 1,
    })),
    detail('playload: misspelt', 'has no property "playload"; did you mean "payload"?', () => ({
      playload: 1,
    })),
    detail('type: in the input of publish', 'has no property "type"', () => ({ type: 'OrderPlaced' })),
    input(
      'a getter that throws',
      'input: could not be read: no',
      Object.defineProperty({}, 'payload', {
        enumerable: true,
        get: () => {
          throw new Error('no')
        },
      }),
    ),
    detail('aggregateId: undefined', 'aggregateId: must be a string, a whole number or a bigint', () => ({
      aggregateId: undefined,
    })),
    detail('aggregateId: null', 'aggregateId: must be a string', () => ({ aggregateId: null })),
    detail("aggregateId: ''", 'aggregateId: must not be empty', () => ({ aggregateId: '' })),
    detail('aggregateId: 1.5', 'aggregateId: must be a string, a whole number', () => ({ aggregateId: 1.5 })),
    detail('aggregateId: 2 ** 53', 'aggregateId: must be a string, a whole number', () => ({
      aggregateId: 2 ** 53,
    })),
    detail('aggregateId: NaN', 'aggregateId: must be a string', () => ({ aggregateId: Number.NaN })),
    detail('aggregateId: {}', 'aggregateId: must be a string', () => ({ aggregateId: {} })),
    detail('aggregateId: 256 characters', 'must be at most 255 characters long, but is 256', () => ({
      aggregateId: 'x'.repeat(256),
    })),
    detail('aggregateId: 10n ** 300n', 'must be at most 255 characters long', () => ({
      aggregateId: 10n ** 300n,
    })),
    detail('aggregateId: with a NUL', 'aggregateId: contains a NUL character', () => ({
      aggregateId: 'a\0',
    })),
    detail('aggregateId: half a character', 'aggregateId: contains half of a surrogate pair', () => ({
      aggregateId: '\ud800',
    })),
    detail("orderingKey: ''", 'orderingKey: must not be empty', () => ({ orderingKey: '' })),
    detail('orderingKey: null', 'orderingKey: must be a string', () => ({ orderingKey: null })),
    detail('orderingKey: []', 'orderingKey: must be a string', () => ({ orderingKey: [] })),
    detail("eventId: 'order-1'", 'eventId: must be a UUID', () => ({ eventId: 'order-1' })),
    detail("eventId: ''", 'eventId: must be a UUID', () => ({ eventId: '' })),
    detail('eventId: 5', 'eventId: must be a UUID', () => ({ eventId: 5 })),
    detail('eventId: a UUID without dashes', 'eventId: must be a UUID', () => ({
      eventId: UUID.replaceAll('-', ''),
    })),
    detail("occurredAt: '2026-01-01'", 'occurredAt: must be a valid Date in the years 1 to 9999', () => ({
      occurredAt: '2026-01-01',
    })),
    detail('occurredAt: an invalid Date', 'occurredAt: must be a valid Date', () => ({
      occurredAt: new Date('x'),
    })),
    detail('occurredAt: the year 12026', 'in the years 1 to 9999', () => ({
      occurredAt: new Date('+012026-01-01'),
    })),
    detail("onDuplicate: 'replace'", "onDuplicate: must be one of 'error', 'ignore'", () => ({
      onDuplicate: 'replace',
    })),
    detail('everything wrong at once', 'eventId: must be a UUID', () => ({
      aggregateId: '',
      eventId: 'x',
      occurredAt: 5,
      onDuplicate: 5,
    })),
  ],
}

export const headers: Group = {
  title: 'Headers',
  rows: [
    detail("headers: 'text'", 'headers: must be a plain object of texts, but is "text"', () => ({
      headers: 'text',
    })),
    detail('headers: []', 'headers: must be a plain object of texts', () => ({ headers: ['a'] })),
    detail('headers: a Map', 'headers: must be a plain object of texts', () => ({
      headers: new Map([['a', 'b']]),
    })),
    detail("headers: fetch's Headers", 'headers: must be a plain object of texts', () => ({
      headers: new Headers({ a: 'b' }),
    })),
    detail('headers: a getter that throws', 'headers: could not be read: no', () => ({
      headers: {
        get market() {
          throw new Error('no')
        },
      },
    })),
    detail(
      "headers: { 'a b': … }",
      'has a name other than 1 to 128 letters, digits, dots, dashes or underscores',
      () => ({ headers: { 'a b': 'x' } }),
    ),
    detail("headers: { '': … }", 'has a name other than 1 to 128 letters', () => ({ headers: { '': 'x' } })),
    detail('headers: a name of 129 characters', 'has a name other than 1 to 128 letters', () => ({
      headers: { ['x'.repeat(129)]: 'x' },
    })),
    detail(
      'headers: an own key "__proto__"',
      'has a name that JavaScript does not treat as a plain key',
      () => ({ headers: JSON.parse('{"__proto__":"x"}') }),
    ),
    detail('headers: { payload: … }', 'has a name that the envelope uses itself', () => ({
      headers: { payload: 'x' },
    })),
    detail('headers: { a: 5 }', 'headers.a: must be a string, but is number', () => ({ headers: { a: 5 } })),
    detail('headers: { a: null }', 'headers.a: must be a string, but is null', () => ({
      headers: { a: null },
    })),
    detail('headers: a line break', 'headers.a: contains a line break', () => ({
      headers: { a: 'x\r\nSet-Cookie: y' },
    })),
    detail('headers: a NUL', 'headers.a: contains a NUL character', () => ({ headers: { a: '\0' } })),
    detail('headers: half a character', 'headers.a: contains half of a surrogate pair', () => ({
      headers: { a: '\udc00' },
    })),
    detail('headers: 65 of them', 'headers: are 65; at most 64 are allowed', () => ({
      headers: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`h${n}`, 'x'])),
    })),
    detail('headers: 9 kB', 'at most 8192 are allowed', () => ({ headers: { a: 'x'.repeat(9_000) } })),
    detail('correlationId: 5', 'headers.correlationId: must be a string, but is number', () => ({
      correlationId: 5,
    })),
    detail('traceparent: 5', 'headers.traceparent: must be a string, but is number', () => ({
      traceparent: 5,
    })),
    ambient('that throws', 'ambientHeaders(): threw, which it must not: no context', () => {
      throw new Error('no context')
    }),
    ambient(
      'that returns a text',
      'ambientHeaders(): must be a plain object of texts, but is "x"',
      () => 'x',
    ),
    borne('traceparent: malformed', 'published without it, as the standard asks', {}, async (scene) =>
      headersOf(scene, await scene.publish({ traceparent: '00-zz', tracestate: 'a=b' })),
    ),
    borne('ambientHeaders that returns nothing', 'published without', {}, async (scene) => {
      const outbox = withAmbient(scene, () => undefined)
      const id = await scene.inTransaction((tx) =>
        outbox.publish(tx, 'OrderPlaced', { aggregateId: 1, payload: {} }),
      )
      return headersOf(scene, id)
    }),
  ],
}

export const batches: Group = {
  title: 'Batches and duplicates',
  rows: [
    batch('undefined', 'INVALID_OPTIONS', 'events must be a list, but is undefined', undefined),
    batch("'text'", 'INVALID_OPTIONS', 'events must be a list, but is "text"', 'text'),
    batch('an object', 'INVALID_OPTIONS', 'events must be a list, but is an object', { length: 1 }),
    batch('[null]', 'INVALID_EVENT', '[0] input: must be an object', [null]),
    batch('[good, bad, good]', 'INVALID_EVENT', '[1] aggregateId: must not be empty', [
      good,
      { ...good, aggregateId: '' },
      good,
    ]),
    batch('[{ …, onDuplicate }]', 'INVALID_EVENT', '[0] input: has no property "onDuplicate"', [
      { ...good, onDuplicate: 'ignore' },
    ]),
    batch('one id twice', 'INVALID_EVENT', '[1] eventId: is that of [0] too', [
      { ...good, eventId: UUID },
      { ...good, eventId: UUID.toUpperCase() },
    ]),
    batch('[good], null', 'INVALID_OPTIONS', 'the options must be an object, but is null', [good], null),
    batch('[good], { onDuplicates }', 'INVALID_OPTIONS', 'did you mean "onDuplicate"?', [good], {
      onDuplicates: 'ignore',
    }),
    batch(
      "[good], { onDuplicate: 'x' }",
      'INVALID_OPTIONS',
      "onDuplicate must be one of 'error', 'ignore'",
      [good],
      { onDuplicate: 'x' },
    ),
    borne('publishAll(tx, [])', 'nothing is written', { ids: [], isChanged: false }, async (scene) => {
      const before = await scene.snapshot()
      const ids = await scene.inTransaction((tx) => scene.outbox.publishAll(tx, []))
      return { ids, isChanged: !isDeepStrictEqual(await scene.snapshot(), before) }
    }),
    borne(
      'the same eventId published twice',
      'DUPLICATE_EVENT, and one row',
      ['DUPLICATE_EVENT', '1'],
      async (scene) => {
        const eventId = '0198c0de-0000-7000-8000-0000000000d1'
        await scene.publish({ eventId })
        const error: unknown = await scene
          .publish({ eventId: eventId.toUpperCase() })
          .catch((thrown: unknown) => thrown)
        const { rows } = await scene.pool.query('select count(*) from outbox_event where event_id = $1', [
          eventId,
        ])
        return [(error as { code: string }).code, rows[0].count]
      },
    ),
    borne("the same eventId with onDuplicate: 'ignore'", 'the first one stays', '{"n": 1}', async (scene) => {
      const eventId = '0198c0de-0000-7000-8000-0000000000d2'
      await scene.publish({ eventId, payload: { n: 1 } })
      await scene.publish({ eventId, payload: { n: 2 }, onDuplicate: 'ignore' })
      const { rows } = await scene.pool.query(
        'select payload::text as text from outbox_event where event_id = $1',
        [eventId],
      )
      return rows[0].text
    }),
  ],
}
