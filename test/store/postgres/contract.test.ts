import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/runtime/clock.ts'
import { completeInTransaction } from '../../../src/store/postgres/complete-in-transaction.ts'
import { quoteSchema } from '../../../src/store/postgres/identifiers.ts'
import { workerPool } from '../../../src/store/postgres/sibling-pool.ts'
import { PostgresWorkerStore } from '../../../src/store/postgres/worker-store.ts'
import type { WorkerStore } from '../../../src/store/store.ts'
import { createTestDatabaseWithTables, type TestDatabase } from '../../support/database.ts'
import { lapseLeases } from '../../support/leases.ts'
import type { ContractDelivery, ContractHarness } from '../contract/harness.ts'
import { beat, claim, DONE, join, retryNow, settled } from '../contract/helpers.ts'
import { laneCases } from '../contract/lane-cases.ts'
import { queueCases } from '../contract/queue-cases.ts'
import { subscriptionCases } from '../contract/subscription-cases.ts'
import { suspectCases } from '../contract/suspect-cases.ts'

const insertSql = (schema: string): string => `
  insert into ${schema}.outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
  select $2, $3, 'thing', a.id, '{}' from unnest($1::text[]) with ordinality as a(id, n) order by a.n`

class PostgresHarness implements ContractHarness {
  readonly #database: TestDatabase
  readonly #workers: WorkerStore[] = []
  readonly #open: (() => Promise<void>)[] = []

  constructor(database: TestDatabase) {
    this.#database = database
  }

  worker(): WorkerStore {
    const connections = workerPool(this.#database.pool, () => undefined)
    const store = new PostgresWorkerStore(connections, quoteSchema(this.#database.schema), systemClock)
    this.#workers.push(store)
    return store
  }

  async publish(
    aggregateIds: readonly string[],
    { type = 'ThingHappened', stream = 'things' }: { readonly type?: string; readonly stream?: string } = {},
  ): Promise<void> {
    await this.#database.pool.query(insertSql(this.#database.schema), [aggregateIds, stream, type])
  }

  async publishOpen(
    aggregateIds: readonly string[],
  ): Promise<{ commit(): Promise<void>; rollback(): Promise<void> }> {
    const client = await this.#database.pool.connect()
    await client.query('begin')
    await client.query(insertSql(this.#database.schema), [aggregateIds, 'things', 'ThingHappened'])
    let ended = false
    const end = async (how: string): Promise<void> => {
      if (ended) return
      ended = true
      await client.query(how)
      client.release()
    }
    this.#open.push(() => end('rollback'))
    return { commit: () => end('commit'), rollback: () => end('rollback') }
  }

  async lapse(workerId: string): Promise<void> {
    const { pool, schema } = this.#database
    await lapseLeases(pool, workerId, schema)
  }

  async deliveries(subscription: string): Promise<readonly ContractDelivery[]> {
    const { pool, schema } = this.#database
    const { rows } = await pool.query<ContractDelivery>(
      `select d.id::text as position, e.aggregate_id as "aggregateId", d.status, d.attempt_count as attempts,
              d.suspect, d.held, d.locked_by as "lockedBy", d.last_error_code as "errorCode"
         from ${schema}.outbox_delivery d join ${schema}.outbox_event e using (event_id)
         join ${schema}.outbox_subscription s on s.id = d.subscription_id
        where s.name = $1 order by d.id`,
      [subscription],
    )
    return rows
  }

  async close(): Promise<void> {
    for (const end of this.#open) await end()
    for (const worker of this.#workers) await worker.close()
  }
}

describe('the store contract on PostgreSQL', () => {
  let database: TestDatabase
  let harness: PostgresHarness

  beforeEach(async () => {
    database = await createTestDatabaseWithTables()
    harness = new PostgresHarness(database)
  })

  afterEach(async () => {
    await harness.close()
    await database.drop()
  })

  test('a handler that completes in a transaction still open costs the worker none of its other leases', async () => {
    const store = harness.worker()
    const sub = await join(store)
    await harness.publish(['a1', 'a2'])
    const [open, other] = await claim(store, sub, 'w1')
    if (open === undefined || other === undefined) throw new Error('nothing was claimed')
    const client = await database.pool.connect()
    try {
      await client.query('begin')
      await completeInTransaction(client, quoteSchema(database.schema), open)
      const report = await beat(store, sub, 'w1', [open, other])
      expect(report.lostDeliveries).toEqual([])
      expect(report.busyDeliveries).toEqual([open])
      const completed = { ...settled(open, retryNow), completed: true }
      expect(await store.settle([completed, settled(other, DONE)])).toEqual({
        lost: [],
        over: [],
        dead: [],
        committed: [],
        busy: [completed],
      })
      await client.query('commit')
      expect(await store.settle([completed])).toMatchObject({
        committed: [{ position: open.position }],
        busy: [],
      })
    } finally {
      client.release()
    }
    expect((await harness.deliveries('sub')).map(({ status }) => status)).toEqual(['DONE', 'DONE'])
  })

  for (const { name, run } of [...queueCases, ...suspectCases, ...laneCases, ...subscriptionCases]) {
    test(name, () => run(harness))
  }
})
