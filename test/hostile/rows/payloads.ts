import { deliver } from '../deliver.ts'
import { borne, type Group, type Refusal, refused } from '../row.ts'
import { revoked } from '../things.ts'

const unstorable = (does: string, says: string, payload: () => unknown): Refusal =>
  refused(`payload: ${does}`, 'PAYLOAD_NOT_STORABLE', says, (scene) => scene.publishPayload(payload()))

const checked = (does: string, name: string, says: string, payload: unknown = {}): Refusal =>
  refused(does, 'PAYLOAD_INVALID', says, (scene) => scene.publishPayload(payload, name))

const keyed = (does: string, says: string, key: () => unknown): Refusal =>
  refused(`orderingKey of the catalogue: ${does}`, 'INVALID_EVENT', says, (scene) =>
    scene.publishPayload(withHidden(key), 'OrderFiled'),
  )

/** A payload whose function is not part of its JSON. */
function withHidden(key: () => unknown): object {
  return Object.defineProperty({ n: 1 }, 'key', { value: key, enumerable: false })
}

function nested(levels: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < levels; level += 1) value = [value]
  return value
}

function cycle(): unknown {
  const order: Record<string, unknown> = {}
  order['self'] = order
  return order
}

function explosive(): unknown {
  let value: unknown = 'x'.repeat(64)
  for (let level = 0; level < 40; level += 1) value = [value, value]
  return value
}

const hostileProxy = (): object =>
  new Proxy(
    {},
    {
      ownKeys: () => {
        throw new Error('go away')
      },
    },
  )

export const payloads: Group = {
  title: 'Payloads',
  rows: [
    unstorable('undefined', 'payload: is undefined, which is no JSON; use null', () => undefined),
    unstorable('a function', 'payload: is a function, which JSON cannot hold', () => () => 1),
    unstorable('a symbol', 'payload: is a symbol, which JSON cannot hold', () => Symbol('x')),
    unstorable('1n', 'payload: is a bigint, which JSON cannot hold; send it as a string', () => 1n),
    unstorable('{ id: 1n }', 'payload.id: is a bigint', () => ({ id: 1n })),
    unstorable('Object(1n)', 'is a bigint', () => Object(1n)),
    unstorable('{ total: NaN }', 'payload.total: is NaN, which JSON cannot hold', () => ({
      total: Number.NaN,
    })),
    unstorable('{ total: -Infinity }', 'payload.total: is -Infinity', () => ({ total: -Infinity })),
    unstorable(
      '2 ** 53',
      'is a number beyond 2^53 - 1, which JavaScript rounds; send it as a string',
      () => 2 ** 53,
    ),
    unstorable('-(2 ** 53)', 'is a number beyond 2^53 - 1', () => -(2 ** 53)),
    unstorable('1e308', 'is a number beyond 2^53 - 1', () => 1e308),
    unstorable('text with a NUL', 'contains a NUL character (U+0000) at offset 1', () => ({ a: ['x\0y'] })),
    unstorable('a key with a NUL', 'has a key that contains a NUL character', () => ({ 'x\0y': 1 })),
    unstorable('a lone high surrogate', 'contains half of a surrogate pair at offset 0', () => '\ud83d'),
    unstorable('a lone low surrogate in a key', 'has a key that contains half of a surrogate pair', () => ({
      '\ude00': 1,
    })),
    unstorable('an emoji cut in two by slice', 'the text was cut inside a character', () =>
      'ok 😀'.slice(0, 4),
    ),
    unstorable('an object that contains itself', 'payload.self: contains itself', cycle),
    unstorable('201 levels deep', 'is nested more than 200 levels deep', () => nested(201)),
    unstorable('100,000 levels deep', 'is nested more than 200 levels deep', () => nested(100_000)),
    unstorable('a Map', 'is a Map or Set, which JSON would turn into {}', () => new Map([['a', 1]])),
    unstorable('a Set inside', 'payload.tags: is a Map or Set', () => ({ tags: new Set(['a']) })),
    unstorable('an Error', 'is an Error, whose message JSON would drop', () => new Error('x')),
    unstorable('a Buffer', 'is binary data; send it as base64 text', () => Buffer.from('x')),
    unstorable('a Uint8Array', 'is binary data', () => new Uint8Array(3)),
    unstorable('an ArrayBuffer', 'is binary data', () => new ArrayBuffer(3)),
    unstorable('an invalid Date', 'payload.at: is an invalid Date', () => ({ at: new Date(Number.NaN) })),
    unstorable('a promise that nobody awaited', 'is an object of a class without own fields', () =>
      Promise.resolve({ total: 1 }),
    ),
    unstorable('a RegExp', 'is an object of a class without own fields', () => /x/),
    unstorable('a WeakMap', 'is an object of a class without own fields', () => new WeakMap()),
    unstorable('[1, undefined]', 'payload[1]: is undefined inside an array', () => [1, undefined]),
    unstorable('a list with a hole', 'payload[1]: is undefined inside an array', () =>
      Object.assign([1], { 2: 3 }),
    ),
    unstorable('a getter that throws', 'payload.total: could not be read: not today', () => ({
      get total() {
        throw new Error('not today')
      },
    })),
    unstorable('a proxy that throws', 'could not be read: go away', hostileProxy),
    unstorable('a revoked proxy', 'could not be read', revoked),
    unstorable('toJSON that throws', 'could not be read: no', () => ({
      toJSON: () => {
        throw new Error('no')
      },
    })),
    unstorable('toJSON that returns undefined', 'is undefined', () => ({ toJSON: () => undefined })),
    refused(
      'payload: 2 MB of text',
      'PAYLOAD_TOO_LARGE',
      'the limit is 1048576 bytes (option maxPayloadBytes)',
      (scene) => scene.publishPayload('x'.repeat(2_000_000)),
    ),
    refused(
      'payload: 40 shared lists that unfold to 2^40 texts',
      'PAYLOAD_TOO_LARGE',
      'is over 4194304 bytes',
      (scene) => scene.publishPayload(explosive()),
    ),
    refused('payload: 10,000 bad values', 'PAYLOAD_NOT_STORABLE', 'payload[19]: is NaN', (scene) =>
      scene.publishPayload(Array.from({ length: 10_000 }, () => Number.NaN)),
    ),
    borne(
      'payload: an own key "__proto__"',
      'stored and delivered as that key',
      { stored: '{"__proto__": {"admin": true}}', delivered: ['__proto__'], admin: undefined },
      async () => {
        let seen: unknown
        await deliver({
          payload: JSON.parse('{"__proto__":{"admin":true}}'),
          handler: async ({ event, pool }) => {
            const { rows } = await pool.query('select payload::text as text from outbox_event')
            const payload = event.payload as object
            // Whoever assigns it makes it the prototype: no own key, and `admin` is true of it.
            seen = {
              stored: rows[0].text,
              delivered: Object.keys(payload),
              admin: Object.getPrototypeOf(payload).admin,
            }
          },
        })
        return seen
      },
    ),
    borne('payload: null', 'stored as JSON null', 'null', async (scene) => {
      const id = await scene.publishPayload(null)
      const { rows } = await scene.pool.query(
        'select payload::text as text from outbox_event where event_id = $1',
        [id],
      )
      return rows[0].text
    }),
    checked('payload that its schema refuses', 'OrderChecked', 'payload.total: Invalid input', {
      total: 'much',
    }),
    checked(
      'payload with a wrong sensitive field',
      'OrderChecked',
      'payload.card: is not valid (a sensitive field: the reason is withheld)',
      {
        total: 1,
        card: 4111,
      },
    ),
    checked('a schema that throws', 'SchemaThrown', 'the schema itself failed: boom'),
    checked('a schema that rejects', 'SchemaRejected', 'the schema itself failed: boom'),
    checked(
      'a schema that answers nothing',
      'SchemaSilenced',
      'the schema answered neither with a value nor with issues',
    ),
    checked(
      'a schema whose issues are a text',
      'SchemaBabbled',
      'the schema answered neither with a value nor with issues',
    ),
    keyed('throws', 'orderingKey: made by the definition of OrderFiled could not be made: no key', () => {
      throw new Error('no key')
    }),
    keyed('returns a number', 'must be a string, but is number', () => 5),
    keyed('returns an empty text', 'must not be empty', () => ''),
    keyed('returns a NUL', 'contains a NUL character', () => '\0'),
  ],
}
