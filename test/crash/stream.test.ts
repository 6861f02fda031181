import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StreamServer, startStreamServer } from '../stream/scene.ts'
import {
  buryWorker,
  countHandled,
  createFaultDatabase,
  type FaultDatabase,
  historyOf,
  LASTING_LEASE_MS,
  workerOn,
} from '../support/fault-database.ts'
import { bePatient, comes } from '../support/patience.ts'
import { publishSteps, stepOutbox, walks } from '../support/steps.ts'
import type { SubscriptionConfig } from '../support/worker-config.ts'
import { WorkerProcess } from '../support/worker-process.ts'

bePatient()

const ordered: SubscriptionConfig = { name: 'mirror', engine: 'stream', order: 'aggregate' }

let server: StreamServer
beforeAll(async () => {
  server = await startStreamServer(18)
})
afterAll(() => server[Symbol.asyncDispose]())

async function everything(
  database: FaultDatabase,
  committed: Parameters<typeof historyOf>[1],
): Promise<void> {
  await comes('all is handled', async () => (await historyOf(database, committed)).lost.length === 0)
}

async function verified({ pool, schema }: FaultDatabase) {
  const { subscriptions } = await stepOutbox(pool, schema).proof.verify()
  return subscriptions[0]
}

describe('of the workers of a stream subscription one reads the log', () => {
  test('and when it is killed, another goes on once its lease has ended: nothing is lost, nothing out of order', async () => {
    await using database = await createFaultDatabase(server.url)
    const first = new WorkerProcess(
      workerOn(database, 'first', ordered, { leaseMs: LASTING_LEASE_MS, handlers: { takesMs: 2 } }),
    )
    await first.told('streaming')
    await using heir = new WorkerProcess(workerOn(database, 'heir', ordered))
    await heir.told('started')
    const committed = walks(20, 60)
    const publishing = publishSteps(stepOutbox(database.pool, database.schema), database.pool, committed, {
      perTransaction: 7,
    })
    await comes('some are handled', async () => (await countHandled(database)) > 100)
    expect(heir.of('streaming')).toEqual([])
    await first.kill()
    await database.pool.query(`update ${database.schema}.outbox_stream set until = clock_timestamp()`)
    await heir.told('streaming')
    await publishing
    await everything(database, committed)
    const { inversions, lost, phantoms } = await historyOf(database, committed)
    expect({ inversions, lost, phantoms }).toEqual({ inversions: [], lost: [], phantoms: [] })
    expect(await verified(database)).toMatchObject({
      holds: true,
      missing: { count: 0 },
      surplus: { count: 0 },
    })
  })

  test('E6 and one that was paused for longer than its lease does nothing more when it wakes up', async () => {
    await using database = await createFaultDatabase(server.url)
    await using zombie = new WorkerProcess(
      workerOn(database, 'zombie', ordered, { handlers: { hold: true } }),
    )
    await zombie.told('streaming')
    const committed = walks(30, 6)
    await publishSteps(stepOutbox(database.pool, database.schema), database.pool, committed)
    await zombie.told('begun', 10)
    zombie.signal('SIGSTOP')
    await comes('its lease is over', async () => {
      const { rows } = await database.pool.query(
        `select until < clock_timestamp() as over from ${database.schema}.outbox_stream`,
      )
      return rows[0]?.over === true
    })
    await using heir = new WorkerProcess(workerOn(database, 'heir', ordered, { leaseMs: LASTING_LEASE_MS }))
    await heir.told('streaming')
    await everything(database, committed)
    const begunBefore = zombie.of('begun').length
    const rowBefore = await database.pool.query(`select epoch, owner from ${database.schema}.outbox_stream`)
    zombie.go()
    zombie.signal('SIGCONT')
    await zombie.told('error')
    zombie.signal('SIGTERM')
    expect(await zombie.ended).toEqual({ code: 0, signal: null })
    const rowAfter = await database.pool.query(`select epoch, owner from ${database.schema}.outbox_stream`)
    expect(rowAfter.rows).toEqual(rowBefore.rows)
    expect(zombie.of('begun').length).toBe(begunBefore)
    const { inversions, duplicates, lost } = await historyOf(database, committed)
    expect({ inversions, lost }).toEqual({ inversions: [], lost: [] })
    expect(duplicates.length).toBeLessThanOrEqual(begunBefore)
    const { rows } = await database.pool.query(
      `select count(*)::int as n from ${database.schema}.outbox_delivery`,
    )
    expect(rows).toEqual([{ n: 0 }])
  })

  test('an event that kills every process that handles it ends as a dead letter, and all others are handled', async () => {
    await using database = await createFaultDatabase(server.url)
    const committed = walks(6, 5)
    const poison = committed[12] as (typeof committed)[number]
    const subscription = { ...ordered, onDead: 'continue', maxAttempts: 2 } as const
    let ended = false
    let starts = 0
    const supervise = async (): Promise<void> => {
      while (!ended) {
        starts += 1
        const worker = new WorkerProcess(
          workerOn(database, `worker-${starts}`, subscription, {
            handlers: { obeysPoison: true },
            leaseMs: 60_000,
          }),
        )
        await Promise.race([worker.ended, comes('the end', () => ended)])
        await worker.kill()
        await buryWorker(database, worker.id)
      }
    }
    const supervising = supervise()
    try {
      await comes('it is registered', async () => {
        const { rows } = await database.pool.query(
          `select 1 from ${database.schema}.outbox_stream where lsn is not null`,
        )
        return rows.length === 1
      })
      await publishSteps(stepOutbox(database.pool, database.schema), database.pool, committed, {
        poison: poison.eventId,
      })
      await comes('it is dead', async () => {
        const { rows } = await database.pool.query(
          `select event_id from ${database.schema}.outbox_dead_letter where error_code = 'CRASHED'`,
        )
        return rows.length === 1 && rows[0].event_id === poison.eventId
      })
      await comes('all others are handled', async () => {
        const { lost } = await historyOf(database, committed)
        return lost.length === 1 && lost[0] === poison.eventId
      })
    } finally {
      ended = true
      await supervising
    }
    const { rows } = await database.pool.query(
      `select count(*)::int as n from ${database.schema}.outbox_dead_letter`,
    )
    expect(rows).toEqual([{ n: 1 }])
  })
})
