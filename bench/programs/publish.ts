// Clients that write as fast as they can, each on a connection of its own.
import { randomInt, randomUUID } from 'node:crypto'
import pg from 'pg'
import { benchOutbox } from '../support/commitpost.ts'
import { payloadOf } from '../support/payload.ts'
import { runProgram } from '../support/program.ts'
import type { PublishReport, PublishTask } from '../support/protocol.ts'

await runProgram<PublishTask>(async (task, talk): Promise<PublishReport> => {
  const { url, way, clients, batch, accounts, warmUpSeconds, seconds } = task
  const pool = new pg.Pool({ connectionString: url, max: clients + 1 })
  const outbox = benchOutbox(pool)
  let number = 0
  const inputOf = () => {
    number += 1
    return { aggregateId: number % accounts, payload: payloadOf(number) }
  }

  const ways: Record<PublishTask['way'], () => Promise<unknown>> = {
    'plain-business': () => inPlainTransaction(pool, (tx) => doBusiness(tx, accounts)),
    business: () => outbox.inTransaction(pool, (tx) => doBusiness(tx, accounts)),
    'business-and-publish': () =>
      outbox.inTransaction(pool, async (tx) => {
        await doBusiness(tx, accounts)
        await outbox.publish(tx, 'OrderPlaced', inputOf())
      }),
    'publish-all': () => {
      const inputs = Array.from({ length: batch }, () => ({ type: 'OrderPlaced' as const, ...inputOf() }))
      return outbox.inTransaction(pool, (tx) => outbox.publishAll(tx, inputs))
    },
    unnest: () => {
      const inputs = Array.from({ length: batch }, inputOf)
      return outbox.inTransaction(pool, (tx) => insertByUnnest(tx, inputs))
    },
  }

  const repeatUntil = async (end: number): Promise<number> => {
    let times = 0
    const client = async (): Promise<void> => {
      while (performance.now() < end) {
        await ways[way]()
        times += 1
      }
    }
    await Promise.all(Array.from({ length: clients }, client))
    return times
  }

  await talk.ready()
  await repeatUntil(performance.now() + warmUpSeconds * 1_000)
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  const times = await repeatUntil(startedAt + seconds * 1_000)
  const elapsed = (performance.now() - startedAt) / 1_000
  const cpu = process.cpuUsage(cpuBefore)
  await pool.end()
  return { perSecond: (times * batch) / elapsed, microsEach: (cpu.user + cpu.system) / (times * batch) }
})

async function inPlainTransaction(pool: pg.Pool, work: (tx: pg.PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect()
  await client.query('BEGIN')
  await work(client)
  await client.query('COMMIT')
  client.release()
}

async function doBusiness(tx: pg.ClientBase, accounts: number): Promise<void> {
  const account = randomInt(1, accounts + 1)
  await tx.query('update bench_business.account set balance = balance - 1 where id = $1', [account])
  await tx.query('insert into bench_business.orders (account, note) values ($1, $2)', [account, 'one piece'])
}

async function insertByUnnest(
  tx: pg.ClientBase,
  inputs: readonly { readonly aggregateId: number; readonly payload: object }[],
): Promise<void> {
  await tx.query(
    `insert into bench_business.bare_event (event_id, event_type, aggregate_id, payload)
     select * from unnest($1::uuid[], $2::text[], $3::text[], $4::jsonb[])`,
    [
      inputs.map(() => randomUUID()),
      inputs.map(() => 'OrderPlaced'),
      inputs.map(({ aggregateId }) => String(aggregateId)),
      inputs.map(({ payload }) => JSON.stringify(payload)),
    ],
  )
}
