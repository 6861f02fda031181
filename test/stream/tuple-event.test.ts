import { expect, test } from 'vitest'
import { PgoutputDecoder } from '../../src/stream/postgres/pgoutput.ts'
import type { TupleEvent } from '../../src/stream/postgres/tuple-event.ts'

const COLUMNS = [
  'event_id',
  'xid',
  'id',
  'stream',
  'event_type',
  'schema_version',
  'aggregate_type',
  'aggregate_id',
  'ordering_key',
  'sequence',
  'payload',
  'headers',
  'occurred_at',
  'created_at',
]
const RELATION = Buffer.from([0, 0, 0, 7])

function int(bytes: 2 | 4 | 8, value: number): Buffer {
  const buffer = Buffer.alloc(bytes)
  buffer.writeIntBE(value, Math.max(0, bytes - 6), Math.min(bytes, 6))
  return buffer
}

function described(): Buffer {
  const columns = COLUMNS.map((name) =>
    Buffer.concat([Buffer.of(0), Buffer.from(`${name}\0`), Buffer.alloc(8)]),
  )
  return Buffer.concat([
    Buffer.from('R'),
    RELATION,
    Buffer.from('s\0t\0d'),
    int(2, COLUMNS.length),
    ...columns,
  ])
}

interface Row {
  readonly eventId: string
  readonly stream: string
  readonly type: string
  readonly aggregateType: string
  readonly orderingKey?: string
  readonly headers?: string
}

function inserted({ eventId, stream, type, aggregateType, orderingKey, headers = '{}' }: Row): Buffer {
  const json = (text: string): Buffer => Buffer.concat([Buffer.of(1), Buffer.from(text)])
  const values = [
    Buffer.from(eventId.replaceAll('-', ''), 'hex'),
    int(8, 4_711),
    int(8, 12),
    Buffer.from(stream),
    Buffer.from(type),
    int(4, 1),
    Buffer.from(aggregateType),
    Buffer.from('k-1'),
    orderingKey === undefined ? null : Buffer.from(orderingKey),
    null,
    json('{"total": 5}'),
    json(headers),
    int(8, 1_000),
    int(8, 1_000),
  ]
  const tuple = values.map((value) =>
    value === null ? Buffer.from('n') : Buffer.concat([Buffer.from('b'), int(4, value.length), value]),
  )
  return Buffer.concat([Buffer.from('I'), RELATION, Buffer.from('N'), int(2, values.length), ...tuple])
}

function read(rows: readonly Row[]): readonly TupleEvent[] {
  const events: TupleEvent[] = []
  const decoder = new PgoutputDecoder({
    insert: (event) => events.push(event) > 0,
    commit: () => undefined,
    message: () => undefined,
  })
  for (const message of [described(), ...rows.map(inserted)]) decoder.decode(message, 0, message.length)
  return events
}

test('E4 every row of the log is read as itself, whatever those before it were and in whatever order they are asked', () => {
  const long = `a.${'stream'.repeat(20)}`
  const rows: readonly Row[] = [
    {
      eventId: '01890a5d-ac96-774b-bcce-b302099a8057',
      stream: 'shop',
      type: 'Placed',
      aggregateType: 'order',
    },
    {
      eventId: '00000000-0000-0000-0000-000000000000',
      stream: 'shop',
      type: 'Closed',
      aggregateType: 'order',
    },
    {
      eventId: 'ffffffff-ffff-4fff-bfff-ffffffffffff',
      stream: 'shoq',
      type: 'Placed',
      aggregateType: '주문',
    },
    { eventId: '10203040-5060-7080-90a0-b0c0d0e0f001', stream: long, type: 'Placed', aggregateType: '주문' },
    {
      eventId: '0a0b0c0d-0e0f-7a0b-8c0d-0e0f0a0b0c0d',
      stream: `${long.slice(0, -1)}n`,
      type: 'P',
      aggregateType: 'orde',
      orderingKey: 'own',
      headers: '{"amendedFrom": "x"}',
    },
  ]
  const events = read(rows)
  for (const [index, row] of [...rows.entries(), ...[...rows.entries()].toReversed()]) {
    const event = events[index]
    const { eventId, stream, type, aggregateType, orderingKey = `${aggregateType}:k-1` } = row
    expect(event).toMatchObject({ eventId, stream, type, orderingKey, position: '12', xid: 4_711 })
    expect(event?.mayStandIn).toBe(row.headers !== undefined)
    expect(event?.event).toMatchObject({
      eventId,
      stream,
      type,
      aggregateType,
      aggregateId: 'k-1',
      orderingKey,
    })
    expect(event?.event).toMatchObject({ payload: { total: 5 }, headers: JSON.parse(row.headers ?? '{}') })
  }
})

test.each([
  { which: 'few', isKept: (n: number) => n % 10 === 7, isMoved: true },
  { which: 'most', isKept: (n: number) => n % 10 !== 7, isMoved: false },
])('where $which of the events in what came are kept, they are moved out of it: $isMoved', (expected) => {
  const { isKept, isMoved } = expected
  const ids = Array.from({ length: 100 }, (_, n) => `01890a5d-ac96-774b-bcce-${String(n).padStart(12, '0')}`)
  const messages = ids.map((eventId) =>
    inserted({ eventId, stream: 'shop', type: 'Placed', aggregateType: 'order' }),
  )
  const kept: TupleEvent[] = []
  let told = 0
  const decoder = new PgoutputDecoder({
    insert: (event) => {
      told += 1
      if (isKept(told - 1)) kept.push(event)
      return isKept(told - 1)
    },
    commit: () => undefined,
    message: () => undefined,
  })
  decoder.decode(described(), 0, described().length)
  const chunk = Buffer.concat(messages)
  const length = chunk.length / messages.length
  for (const n of messages.keys()) decoder.decode(chunk, n * length, (n + 1) * length)
  decoder.ended(chunk)
  const idsOf = (): readonly string[] => kept.map(({ event }) => event.eventId)
  const wanted = ids.filter((_, n) => isKept(n))
  expect(idsOf()).toEqual(wanted)
  // Whatever is still in what came is the first event now.
  chunk.fill(messages[0] as Buffer)
  expect(idsOf()).toEqual(isMoved ? wanted : wanted.map(() => ids[0]))
})
