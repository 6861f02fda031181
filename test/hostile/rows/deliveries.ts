import type pg from 'pg'
import type { OutboxEvent } from '../../../src/index.ts'
import { deliver } from '../deliver.ts'
import { type Behaviour, borne, type Group } from '../row.ts'

const inserted = (
  does: string,
  means: string,
  columns: string,
  values: string,
  expected: unknown,
  look: (event: OutboxEvent, pool: pg.Pool) => unknown,
  type = 'OrderPlaced',
): Behaviour =>
  borne(`a plain INSERT with ${does}`, means, expected, async () => {
    let seen: unknown
    await deliver({
      handler: async ({ event, pool }) => {
        seen = await look(event, pool)
      },
      insert: `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, ${columns})
               values ('shop.order', '${type}', 'order', '1', ${values})`,
    })
    return seen
  })

export const deliveries: Group = {
  title: 'What other programs inserted',
  rows: [
    inserted(
      "occurred_at 'infinity'",
      'delivered with the farthest time JavaScript can hold',
      'payload, occurred_at',
      `'{}', 'infinity'`,
      '+275760-09-13T00:00:00.000Z',
      ({ occurredAt }) => occurredAt.toISOString(),
    ),
    inserted(
      "occurred_at '-infinity'",
      'delivered with the earliest time JavaScript can hold',
      'payload, occurred_at',
      `'{}', '-infinity'`,
      '-271821-04-20T00:00:00.000Z',
      ({ occurredAt }) => occurredAt.toISOString(),
    ),
    inserted(
      'the number 12345678901234567890',
      'stored exactly, but rounded by JavaScript when it is delivered: write such numbers as text',
      'payload',
      `'{"id": 12345678901234567890}'`,
      { delivered: { id: 12345678901234567000 }, stored: '12345678901234567890' },
      async ({ payload }, pool) => {
        const { rows } = await pool.query(`select payload ->> 'id' as id from outbox_event`)
        return { delivered: payload, stored: rows[0].id }
      },
    ),
    inserted(
      'sequence 0',
      'any number asks for numbering: delivered as number 1 of its key',
      'payload, sequence',
      `'{}', 0`,
      1,
      ({ sequence }) => sequence,
    ),
    inserted(
      'headers that are no texts',
      'each is delivered as its JSON text',
      'payload, headers',
      `'{}', '{"a": 5, "b": {"c": null}}'`,
      { a: '5', b: '{"c":null}' },
      ({ headers }) => headers,
    ),
    inserted(
      'an event type that is in no catalogue',
      "delivered to the '*' handler as it is",
      'payload',
      `'{}'`,
      'Nonsense',
      ({ type }) => type,
      'Nonsense',
    ),
  ],
}
