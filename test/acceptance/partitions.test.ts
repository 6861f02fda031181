import { expect, test } from 'vitest'
import { defineEvents, unchecked } from '../../src/index.ts'
import { partitionTables } from '../../src/store/postgres/index.ts'
import { createOwnServer } from '../hazards/support.ts'
import { postgresAvailable } from '../support/servers.ts'
import { eventually, System } from './support.ts'

const postings = defineEvents({
  PostingRecorded: { stream: 'ledger.posting', aggregate: 'account', schema: unchecked<{ n: number }>() },
})

const ROWS = 1_000_000
const PUBLISHERS = 4

/** A trail of years: events that were handled long ago, written as they would have been left. */
async function fill(system: System<typeof postings>): Promise<void> {
  const client = await system.pool.connect()
  try {
    await client.query('begin; set local session_replication_role = replica')
    await client.query(
      `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
       select 'ledger.posting', 'PostingRecorded', 'account', (n % 1000)::text, '{"n": 0}'
         from generate_series(1, $1::int) n`,
      [ROWS],
    )
    await client.query(
      `insert into outbox_delivery (subscription_id, lane, id, event_id, status, fresh, attempt_count, max_attempts,
              last_attempt_at, processed_at)
       select s.id, 0, e.id, e.event_id, 'DONE', false, 1, 3, e.created_at, clock_timestamp()
         from outbox_event e, outbox_subscription s`,
    )
    await client.query('commit')
  } finally {
    client.release()
  }
}

/** Publishes until told to stop, one event after the other, and keeps account of it. */
class Publisher {
  readonly ids: string[] = []
  readonly #system: System<typeof postings>
  #isOver = false

  constructor(system: System<typeof postings>) {
    this.#system = system
  }

  async run(): Promise<void> {
    for (let n = 0; !this.#isOver; n += 1) {
      this.ids.push(
        await this.#system.publish('PostingRecorded', { aggregateId: `live-${n}`, payload: { n } }),
      )
    }
  }

  stop(): void {
    this.#isOver = true
  }
}

// On a server of its own. To write a million rows, and to have them checked by a constraint, are transactions that go on
// for long, and whatever registers on a server waits for all that are open there, in whichever schema or database.
test.skipIf(!postgresAvailable())(
  'L11 a million events are partitioned while publishers and a worker go on, and nothing is lost',
  {
    timeout: 900_000,
  },
  async () => {
    await using system = new System(await createOwnServer(), postings, {})
    const handled = new Set<string>()
    const totals = system.outbox.subscription('totals', {
      on: { PostingRecorded: ({ eventId }) => void handled.add(eventId) },
    })
    await system.run([totals])
    await fill(system)
    const publishers = Array.from({ length: PUBLISHERS }, () => new Publisher(system))
    const running = publishers.map((publisher) => publisher.run())
    const each = (least: number) => () => publishers.every(({ ids }) => ids.length >= least)
    await eventually('all publish', each(5))
    const report = await partitionTables(system.newPool(), { schema: system.schema })
    expect(report.converted).toBe(true)
    const sofar = Math.max(...publishers.map(({ ids }) => ids.length))
    await eventually('all go on', each(sofar + 5))
    for (const publisher of publishers) publisher.stop()
    await Promise.all(running)
    const published = publishers.flatMap(({ ids }) => ids)
    await eventually('all are handled', () => published.every((id) => handled.has(id)))
    await eventually(
      'all is written',
      async () => (await system.count('outbox_delivery', "status <> 'DONE'")) === 0,
    )
    expect(await system.count('outbox_event')).toBe(ROWS + published.length)
    expect(await system.count('outbox_event_rest')).toBe(ROWS + published.length)
    const { holds, subscriptions } = await system.outbox.proof.verify()
    expect(holds).toBe(true)
    expect(subscriptions[0]?.matched).toBe(ROWS + published.length)
  },
)
