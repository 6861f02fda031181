import { describe, expect, test } from 'vitest'
import { type Clock, createOutbox, systemClock } from '../../src/index.ts'
import { quoteSchema } from '../../src/store/postgres/identifiers.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { wakeChannel } from '../../src/store/postgres/wake-channel.ts'
import {
  allDone,
  countHandled,
  createFaultDatabase,
  type FaultDatabase,
  joined,
  workerOn,
} from '../support/fault-database.ts'
import { readHistory } from '../support/history.ts'
import { bePatient, comes } from '../support/patience.ts'
import { type StepWorker, startAll, stepWorker } from '../support/step-worker.ts'
import { publishSteps, stepOutbox, steps, walks } from '../support/steps.ts'
import { WorkerProcess } from '../support/worker-process.ts'

bePatient()

/** Polls once in ten minutes, from the first empty claim on: whatever arrives in a test was announced. */
const NEVER_POLLS = { pollMs: 600_000, pollMinMs: 600_000 }

/** Pauses a twentieth of the time: listening is checked and resumed in parts of a second. */
const hurried: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(ms / 20, signal),
}

/** How many events of a subscription a worker has handled. */
function count(worker: StepWorker, name: string): number {
  return worker.of('handled').filter(({ subscription }) => subscription === name).length
}

/** The backend that listens for this schema, if there is one. */
async function listener({ pool, schema }: FaultDatabase): Promise<number | null> {
  const { rows } = await pool.query<{ pid: number }>(
    'select pid from pg_stat_activity where query = $1 and pid <> pg_backend_pid()',
    [`listen "${wakeChannel(quoteSchema(schema))}"`],
  )
  return rows[0]?.pid ?? null
}

describe('a worker is woken', () => {
  test('by a commit in another process, long before it would poll', async () => {
    await using database = await createFaultDatabase()
    await using worker = new WorkerProcess(
      workerOn(database, 'sleeper', { name: 'woken', ...NEVER_POLLS }, { listen: true }),
    )
    await worker.told('started')
    await joined(database, 'woken')
    const committed = walks(1, 3)
    const outbox = stepOutbox(database.pool, database.schema)

    for (const event of committed) {
      await publishSteps(outbox, database.pool, [event])
      await comes(
        `step ${event.seq} is handled`,
        async () => (await countHandled(database)) === event.seq + 1,
      )
    }

    expect((await readHistory(database.witness, database.schema)).map(({ seq }) => seq)).toEqual([0, 1, 2])
  })

  test('by a commit in its own process, without the database', async () => {
    await using database = await createFaultDatabase()
    const { pool, schema } = database
    const outbox = createOutbox({ store: postgresStore({ pool, schema }), events: steps, notify: false })
    const sleeper = stepWorker(outbox, database, { woken: NEVER_POLLS }, { listen: false })
    await using _worker = sleeper.worker
    await startAll(sleeper)
    const committed = walks(1, 3)

    for (const event of committed) {
      await publishSteps(outbox, pool, [event])
      await comes(
        `step ${event.seq} is handled`,
        async () => (await countHandled(database)) === event.seq + 1,
      )
    }
  })

  test('only to look sooner: polling finds what nobody announced', async () => {
    await using database = await createFaultDatabase()
    const { pool, schema } = database
    const silent = createOutbox({ store: postgresStore({ pool, schema }), events: steps, notify: false })
    const sleeper = stepWorker(
      stepOutbox(pool, schema),
      database,
      { polling: { pollMs: 20 }, woken: NEVER_POLLS },
      { listen: true },
    )
    await using _worker = sleeper.worker
    await startAll(sleeper)

    // The one that does not poll may still be looking when the first come; sooner or later it is asleep.
    let published = 0
    await comes('polling alone finds one', async () => {
      await publishSteps(silent, pool, walks(1, 1))
      published += 1
      await comes('polling finds it', () => count(sleeper, 'polling') === published)
      return count(sleeper, 'woken') < published
    })

    stepOutbox(pool, schema).wake()
    await allDone(database, 2 * published)
  })

  test('again after its listening connection was lost; until then polling delivers', async () => {
    await using database = await createFaultDatabase()
    const { pool, schema } = database
    const outbox = createOutbox({ store: postgresStore({ pool, schema, clock: hurried }), events: steps })
    const sleeper = stepWorker(
      outbox,
      database,
      { polling: { pollMs: 20 }, woken: NEVER_POLLS },
      { listen: true },
    )
    await using _worker = sleeper.worker
    await startAll(sleeper)
    const lost = await listener(database)
    const elsewhere = stepOutbox(pool, schema)

    await pool.query('select pg_terminate_backend($1)', [lost])
    await publishSteps(elsewhere, pool, walks(1, 1))
    await comes('polling has found it', () => count(sleeper, 'polling') === 1)
    await comes('it listens again', async () => ![null, lost].includes(await listener(database)))
    await publishSteps(elsewhere, pool, walks(1, 1))

    await allDone(database, 4)
  })
})
