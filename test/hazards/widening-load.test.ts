import { expect, test } from 'vitest'
import { claimLanes, DONE, settled, takeLanes, untilActive } from '../store/contract/helpers.ts'
import { column, one } from '../store/postgres/fixtures.ts'
import { type Hazard, hazard } from './support.ts'
import { ordered } from './widening-scene.ts'

const TYPES = Array.from({ length: 11 }, (_, n) => `T${n}`)
const SERVED_PER_WIDENING = 50

interface Served {
  readonly key: string
  readonly sequence: number
  readonly id: string
}

/** Publishes two events of one key in each transaction until it is told to stop. */
async function publishOn(h: Hazard, n: number, isOver: () => boolean): Promise<void> {
  const client = await h.connect(`publisher ${n}`)
  for (let round = 0; !isOver(); round += 1) {
    await client.query('begin')
    for (const type of [round + n, 2 * round + n + 1].map((of) => TYPES[of % TYPES.length])) {
      // Numbered: the lock on the key makes position order commit order.
      await client.query(
        `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, sequence, payload)
         values ('s', $1, 'thing', $2, 1, '{}')`,
        [type, `k${(round * (n + 1)) % 3}`],
      )
    }
    await client.query('commit')
  }
}

function inversions(served: readonly Served[]): readonly Served[] {
  const last = new Map<string, number>()
  return served.filter(({ key, sequence }) => {
    const isBack = sequence < (last.get(key) ?? 0)
    last.set(key, Math.max(sequence, last.get(key) ?? 0))
    return isBack
  })
}

test('widened once and again under load, no key is served out of order, and nothing due is missing', async () => {
  await using h = await hazard()
  const [{ store }, other] = [h.worker('worker'), h.worker('other')]
  const sub = await store.register(ordered('T0'))
  await untilActive(store)
  const lanes = await takeLanes(store, sub, 'w')
  const served: Served[] = []
  const serve = async (): Promise<number> => {
    const claimed = await claimLanes(store, sub, 'w', lanes)
    served.push(
      ...claimed.map(({ event }) => ({
        key: event.aggregateId,
        sequence: Number(event.sequence),
        id: event.eventId,
      })),
    )
    await store.settle(claimed.map((delivery) => settled(delivery, DONE)))
    return claimed.length
  }
  const takenSince = new Map([['T0', '0']])
  const widen = async (widest: number): Promise<void> => {
    const types = TYPES.slice(0, widest + 1)
    await Promise.all([store.register(ordered(...types)), other.store.advanceJoining(), serve()])
    takenSince.set(`T${widest}`, await one(h.db.pool, 'select last_value from outbox_event_id_seq'))
    const before = served.length
    while (served.length < before + SERVED_PER_WIDENING) {
      await Promise.all([store.advanceJoining(), other.store.advanceJoining(), serve()])
    }
  }

  let isOver = false
  const publishers = [0, 1, 2, 3].map((n) => publishOn(h, n, () => isOver))
  for (let widest = 1; widest < TYPES.length; widest += 2) {
    const old = await h.connect(`old ${widest}`)
    await old.query('begin; select pg_current_xact_id()')
    await widen(widest)
    await widen(widest + 1)
    await old.query('commit')
    while ((await store.advanceJoining()).length > 0) await serve()
  }
  isOver = true
  await Promise.all(publishers)
  while ((await serve()) > 0);

  expect(inversions(served)).toEqual([])
  const ids = new Set(served.map(({ id }) => id))
  for (const [type, position] of takenSince) {
    const due = 'select event_id from outbox_event where event_type = $1 and id > $2'
    expect((await column<string>(h.db.pool, due, [type, position])).filter((id) => !ids.has(id))).toEqual([])
  }
})
