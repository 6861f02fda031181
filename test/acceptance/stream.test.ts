import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createOutbox, defineEvents, type OutboxEvent, unchecked } from '../../src/index.ts'
import { migrateUp, postgresStore } from '../../src/store/postgres/index.ts'
import { type StreamServer, startStreamServer } from '../stream/scene.ts'
import { bePatient, comes } from '../support/patience.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'

bePatient()

const STREAMS = [
  'everbit.trade.command',
  'everbit.trade.event',
  'everbit.backtest.command',
  'everbit.backtest.event',
  'everbit.system.event',
] as const
const plain = { aggregate: 'thing', schema: unchecked<{ readonly n: number }>() }
const events = defineEvents({
  OrderRequested: { ...plain, stream: STREAMS[0] },
  OrderFilled: { ...plain, stream: STREAMS[1] },
  BacktestRequested: { ...plain, stream: STREAMS[2] },
  BacktestFinished: { ...plain, stream: STREAMS[3] },
  SystemStarted: { ...plain, stream: STREAMS[4] },
})

let server: StreamServer
let pool: pg.Pool
beforeAll(async () => {
  server = await startStreamServer(18)
  pool = sturdyPool({ connectionString: server.url })
})
afterAll(async () => {
  await pool.end()
  await server[Symbol.asyncDispose]()
})

/** An outbox in a schema of its own, with a table that handlers write their effects to. */
async function system() {
  const schema = `a_${randomBytes(5).toString('hex')}`
  await pool.query(`create schema ${schema}`)
  await migrateUp(pool, { schema })
  await pool.query(`create table ${schema}.effect (engine text, event_id uuid, type text, n integer)`)
  const outbox = createOutbox({ store: postgresStore({ pool, schema }), events })
  const effects = async (engine: string): Promise<readonly Record<string, unknown>[]> =>
    (
      await pool.query(`select event_id, type, n from ${schema}.effect where engine = $1 order by event_id`, [
        engine,
      ])
    ).rows as Record<string, unknown>[]
  const handler =
    (engine: string, after: (event: OutboxEvent) => void = () => undefined) =>
    async (
      event: OutboxEvent,
      ctx: { once(p: pg.Pool, work: (tx: pg.PoolClient) => Promise<unknown>): Promise<unknown> },
    ) => {
      await ctx.once(pool, (tx) =>
        tx.query(`insert into ${schema}.effect values ($1, $2, $3, $4)`, [
          engine,
          event.eventId,
          event.type,
          (event.payload as { readonly n: number }).n,
        ]),
      )
      after(event)
    }
  return { schema, outbox, effects, handler }
}

describe('the log stream', () => {
  test('E4 I1 brings the events of all five streams to the same handlers as the queue, with the same effects', async () => {
    const { outbox, effects, handler, schema } = await system()
    const worker = outbox.worker(
      (['queue', 'stream'] as const).map((engine) =>
        outbox.subscription(engine, { engine, streams: ['everbit.*'], on: { '*': handler(engine) } }),
      ),
      { leaseMs: 1_000, housekeepingMs: 50 },
    )
    await worker.start()
    await worker.active()
    const names = [
      'OrderRequested',
      'OrderFilled',
      'BacktestRequested',
      'BacktestFinished',
      'SystemStarted',
    ] as const
    for (let n = 0; n < 40; n += 1) {
      const publishing = outbox.inTransaction(pool, async (tx) => {
        await outbox.publish(tx, names[n % 5] ?? 'OrderFilled', {
          aggregateId: String(n % 7),
          payload: { n },
        })
        if (n % 8 === 7) throw new Error('the application changed its mind')
      })
      await publishing.catch(() => undefined)
    }
    await comes(
      'both have all',
      async () => (await effects('queue')).length + (await effects('stream')).length >= 70,
    )
    const stored = await pool.query(
      `select event_id, event_type as type from ${schema}.outbox_event order by event_id`,
    )
    expect(stored.rows).toHaveLength(35)
    expect((await effects('stream')).map(({ event_id, type }) => ({ event_id, type }))).toEqual(stored.rows)
    expect(await effects('stream')).toEqual(await effects('queue'))
    await worker.stop()
  })

  test('I6 I7 delivers again what was not recorded when its reader was cut off, and the effect happens once', async () => {
    const { outbox, effects, handler, schema } = await system()
    let runs = 0
    let isLogRead = false
    const workerOf = (): ReturnType<typeof outbox.worker> =>
      outbox.worker(
        [
          outbox.subscription('stream', {
            engine: 'stream',
            order: 'aggregate',
            on: {
              '*': handler('stream', () => {
                runs += 1
              }),
            },
          }),
        ],
        {
          leaseMs: 1_000,
          housekeepingMs: 50,
          observers: [
            ({ kind }) => {
              isLogRead ||= kind === 'streaming'
            },
          ],
        },
      )
    const worker = workerOf()
    await worker.start()
    // Before that the table is read, and a reader that is cut off while it makes its slot leaves none behind.
    await comes('the log is read', () => isLogRead)
    for (let round = 0; round < 12; round += 1) {
      await outbox.inTransaction(pool, (tx) =>
        outbox.publishAll(
          tx,
          Array.from({ length: 10 }, (_, n) => ({
            type: 'OrderFilled' as const,
            aggregateId: String(n),
            payload: { n: round },
          })),
        ),
      )
      // Its sender is ended in the middle, and once the record of how far it was is put back, as a restored one would be.
      await pool.query(
        `select pg_terminate_backend(r.active_pid) from pg_replication_slots r
           join ${schema}.outbox_stream t on t.slot = r.slot_name where r.active_pid is not null`,
      )
    }
    await comes('all have had their effect', async () => (await effects('stream')).length >= 120)
    await worker.stop()
    await comes('the server knows that nobody reads', async () => {
      const { rows } = await pool.query(`select 1 from pg_replication_slots r join ${schema}.outbox_stream t
        on t.slot = r.slot_name where not r.active`)
      return rows.length === 1
    })
    await pool.query(`select pg_drop_replication_slot(slot) from ${schema}.outbox_stream`)
    await pool.query(`update ${schema}.outbox_stream set snapshot = '1:1:'`)
    const before = runs
    const again = workerOf()
    await again.start()
    await comes('all came once more', () => runs >= before + 120)
    await again.stop()
    expect(await effects('stream')).toHaveLength(120)
    const { holds } = await outbox.proof.verify()
    expect(holds).toBe(true)
  })
})
