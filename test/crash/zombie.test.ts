import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  allDone,
  createFaultDatabase,
  type FaultDatabase,
  historyOf,
  joined,
  LASTING_LEASE_MS,
  workerOn,
} from '../support/fault-database.ts'
import { bePatient } from '../support/patience.ts'
import { publishSteps, stepOutbox, walks } from '../support/steps.ts'
import type { SubscriptionConfig } from '../support/worker-config.ts'
import { WorkerProcess } from '../support/worker-process.ts'

bePatient()

const unordered: SubscriptionConfig = { name: 'unordered' }
const ordered: SubscriptionConfig = { name: 'ordered', order: 'aggregate' }

/** Everything the database says of deliveries: whoever writes to one of them changes it. */
async function deliveriesOf({ pool, schema }: FaultDatabase): Promise<readonly unknown[]> {
  const { rows } = await pool.query(`select xmin, * from ${schema}.outbox_delivery order by id`)
  return rows
}

describe('a worker that was paused for longer than its lease', () => {
  test.each([
    { title: 'E6 of an unordered subscription', subscription: unordered },
    { title: 'E6 U4 of an ordered subscription', subscription: ordered },
  ])('$title changes nothing when it wakes up, and says so', async ({ subscription }) => {
    await using database = await createFaultDatabase()
    await using zombie = new WorkerProcess(
      workerOn(database, 'zombie', subscription, { handlers: { hold: true } }),
    )
    await zombie.told('started')
    await joined(database, subscription.name)
    const committed = walks(10, 6)
    await publishSteps(stepOutbox(database.pool, database.schema), database.pool, committed)
    await zombie.told('begun', 10)

    zombie.signal('SIGSTOP')
    await using _heir = new WorkerProcess(
      workerOn(database, 'heir', subscription, { leaseMs: LASTING_LEASE_MS }),
    )
    await allDone(database, committed.length)
    const before = await deliveriesOf(database)
    zombie.go()
    zombie.signal('SIGCONT')

    // Its ten handlers were let go, have had their effect again, and their results were refused.
    await zombie.told('leaseLost', 10)
    zombie.signal('SIGTERM')
    expect(await zombie.ended).toEqual({ code: 0, signal: null })
    expect(zombie.of('handled')).toEqual([])
    expect(await deliveriesOf(database)).toEqual(before)
    const { inversions, duplicates, ...rest } = await historyOf(database, committed)
    expect(rest).toEqual({ lost: [], phantoms: [] })
    expect(duplicates.length).toBeLessThanOrEqual(10)
    if (subscription.order !== undefined) expect(inversions).toEqual([])
  })
})

describe('a handler that blocks the event loop for longer than the lease', () => {
  test('E6 has its late result refused: nothing is settled twice and nothing lost', async () => {
    await using database = await createFaultDatabase()
    const directory = await mkdtemp(join(tmpdir(), 'commitpost-block-'))
    const blocksUntil = join(directory, 'go-on')
    await using blocked = new WorkerProcess(
      workerOn(database, 'blocked', { ...ordered, concurrency: 1 }, { handlers: { blocksUntil } }),
    )
    await blocked.told('started')
    await joined(database, ordered.name)
    const committed = walks(4, 5)
    await publishSteps(stepOutbox(database.pool, database.schema), database.pool, committed)
    await blocked.told('begun')

    await using _heir = new WorkerProcess(workerOn(database, 'heir', ordered, { leaseMs: LASTING_LEASE_MS }))
    await allDone(database, committed.length)
    const before = await deliveriesOf(database)
    await writeFile(blocksUntil, '')

    await blocked.told('leaseLost')
    blocked.signal('SIGTERM')
    expect(await blocked.ended).toEqual({ code: 0, signal: null })
    expect(blocked.of('handled')).toEqual([])
    expect(await deliveriesOf(database)).toEqual(before)
    const { duplicates, ...rest } = await historyOf(database, committed)
    expect(rest).toEqual({ lost: [], phantoms: [], inversions: [] })
    expect(duplicates.length).toBeLessThanOrEqual(1)
    await rm(directory, { recursive: true })
  })
})
