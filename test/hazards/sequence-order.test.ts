import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { NewEvent } from '../../src/event/event.ts'
import { sqlState } from '../../src/runtime/sql-state.ts'
import { insertEvents } from '../../src/store/postgres/insert-events.ts'
import { column, insertEvent } from '../store/postgres/fixtures.ts'
import { type Hazard, hazard, replaceFunction } from './support.ts'

const sequenced = (aggregateId: string): NewEvent => ({
  eventId: randomUUID(),
  stream: 's',
  type: 'ThingHappened',
  schemaVersion: 1,
  aggregateType: 'thing',
  aggregateId,
  orderingKey: null,
  sequenced: true,
  payloadJson: '{}',
  headers: {},
  occurredAt: null,
})

/** Two publishers of one key: the second begins while the first is at work, and waits. Sequence numbers by position. */
async function overtake(h: Hazard): Promise<readonly number[]> {
  const [first, second] = [await h.connect('first'), await h.connect('second')]
  await first.query('begin')
  await insertEvent(first, { sequenced: true })
  const waiting = insertEvent(second, { sequenced: true })
  await h.untilBlocked('second')
  await insertEvent(first, { sequenced: true })
  await first.query('commit')
  await waiting
  return (await column<string>(h.db.pool, 'select sequence from outbox_event order by id')).map(Number)
}

/** Two batches with the same keys in opposite order, both stopped half-way and let go. Returns their SQLSTATEs. */
async function crossBatches(
  h: Hazard,
  publish: (name: string, keys: readonly string[]) => Promise<unknown>,
): Promise<readonly (string | null)[]> {
  const gate = await h.connect('gate')
  await gate.query('begin')
  await insertEvent(gate, { aggregateId: 'm', orderingKey: 'thing:m', sequenced: true })
  const outcome = async (publishing: Promise<unknown>): Promise<string | null> => {
    try {
      await publishing
      return null
    } catch (error) {
      return sqlState(error)
    }
  }
  const one = outcome(publish('one', ['a', 'm', 'z']))
  await h.untilBlocked('one')
  const two = outcome(publish('two', ['z', 'm', 'a']))
  await h.untilBlocked('two')
  await gate.query('rollback')
  return Promise.all([one, two])
}

describe('events of one key that are numbered', () => {
  test('L9 have positions in the order of their numbers, also when a publisher had to wait', async () => {
    await using h = await hazard()
    expect(await overtake(h)).toEqual([1, 2, 3])
  })

  test('have positions in another order if the position is taken before the key is locked', async () => {
    await using h = await hazard()
    await replaceFunction(h, 'outbox_number', (definition) =>
      definition.replace(/new\.id := nextval[^;]*;/, ''),
    )
    expect(await overtake(h)).toEqual([1, 3, 2])
  })

  test('L9 are numbered in the order of commits and without gaps, whatever publishers do', async () => {
    await using h = await hazard()
    const log: { key: string; sequence: number; insertedMs: number; commitSentMs: number }[] = []
    const publisher = async (n: number): Promise<void> => {
      const client = await h.connect(`publisher ${n}`)
      for (let round = 0; round < 40; round += 1) {
        const key = `k${(round * (n + 1)) % 3}`
        const eventId = randomUUID()
        await client.query('begin')
        await insertEvent(client, { eventId, aggregateId: key, sequenced: true })
        const insertedMs = performance.now()
        const { rows } = await client.query<{ sequence: string }>(
          'select sequence from outbox_event where event_id = $1',
          [eventId],
        )
        if (round % 10 === 9) {
          await client.query('rollback')
          continue
        }
        const commitSentMs = performance.now()
        await client.query('commit')
        log.push({ key, sequence: Number(rows[0]?.sequence), insertedMs, commitSentMs })
      }
    }
    await Promise.all(Array.from({ length: 6 }, (_, n) => publisher(n)))
    for (const key of ['k0', 'k1', 'k2']) {
      const ofKey = log.filter((entry) => entry.key === key).toSorted((a, b) => a.sequence - b.sequence)
      expect(ofKey.map(({ sequence }) => sequence)).toEqual(ofKey.map((_, index) => index + 1))
      const early = ofKey.filter((entry, index) => entry.insertedMs < (ofKey[index - 1]?.commitSentMs ?? 0))
      expect(early, 'nobody is numbered before the one before has committed').toEqual([])
      const byPosition = await column<string>(
        h.db.pool,
        'select sequence from outbox_event where aggregate_id = $1 order by id',
        [key],
      )
      expect(byPosition.map(Number)).toEqual(ofKey.map(({ sequence }) => sequence))
    }
  })
})

describe('two batches that number events of the same keys in opposite order', () => {
  test('do not wait for each other for ever: a batch locks its keys in one order', async () => {
    await using h = await hazard()
    const outcomes = await crossBatches(h, async (name, keys) => {
      const client = await h.connect(name)
      const tx = { query: (text: string, params: readonly unknown[] = []) => client.query(text, [...params]) }
      await insertEvents(tx, h.db.quoted, keys.map(sequenced), { onDuplicate: 'error' })
    })
    expect(outcomes).toEqual([null, null])
  })

  test('deadlock if each goes by its own order', async () => {
    await using h = await hazard()
    const outcomes = await crossBatches(h, async (name, keys) => {
      const client = await h.connect(name)
      await client.query(
        `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, sequence, payload)
         select 's', 't', 'thing', k.key, 1, '{}' from unnest($1::text[]) with ordinality as k(key, n) order by n`,
        [keys],
      )
    })
    expect(outcomes.filter((state) => state === '40P01')).toHaveLength(1)
  })
})
