import pg from 'pg'
import { describe, expect, test } from 'vitest'
import {
  allDone,
  createFaultDatabase,
  type FaultDatabase,
  joined,
  workerOn,
} from '../support/fault-database.ts'
import { checkHistory, overtakenBy, type PublishedEvent, readHistory } from '../support/history.ts'
import { bePatient, comes } from '../support/patience.ts'
import { publishSteps, stepOutbox, walks } from '../support/steps.ts'
import { WorkerProcess } from '../support/worker-process.ts'

bePatient()

/** None may lapse but by the kill, however busy the machine is. */
const LEASE_MS = 10_000
const SUBSCRIPTION = { name: 'ordered', order: 'aggregate' } as const
const KEYS = 4
/** Its rows are never locked: what is done of it shows that a worker has come by. */
const FREE = `walk-${KEYS - 1}`

const publish = ({ pool, schema }: FaultDatabase, events: readonly PublishedEvent[]): Promise<void> =>
  publishSteps(stepOutbox(pool, schema), pool, events)

/** One more event of a key. */
const another = (key: string, seq: number): PublishedEvent => ({ eventId: crypto.randomUUID(), key, seq })

async function becomesDone({ pool, schema }: FaultDatabase, { eventId }: PublishedEvent): Promise<void> {
  await comes('an event of the free key is done', async () => {
    const { rows } = await pool.query(
      `select from ${schema}.outbox_delivery where event_id = $1 and status = 'DONE'`,
      [eventId],
    )
    return rows.length === 1
  })
}

/** Somebody who locks deliveries, as a person in psql might. Let go when it ends, if not before. */
class Person implements AsyncDisposable {
  readonly #client: pg.Client

  private constructor(client: pg.Client) {
    this.#client = client
  }

  static async locking({ url, schema }: FaultDatabase, events: readonly PublishedEvent[]): Promise<Person> {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    const ids = events.map(({ eventId }) => eventId)
    await client.query('begin')
    await client.query(`select from ${schema}.outbox_delivery where event_id = any ($1) for update`, [ids])
    return new Person(client)
  }

  async letGo(): Promise<void> {
    await this.#client.query('rollback')
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#client.end()
  }
}

/** Waits until each of these was handled, or is back: on a busy machine a worker may learn of the lock before it starts it. */
async function handledOrBack(database: FaultDatabase, events: readonly PublishedEvent[]): Promise<void> {
  const { pool, witness, schema } = database
  await comes('the events behind the locked ones are handled, or back', async () => {
    const { rows } = await pool.query<{ event_id: string }>(
      `select event_id from ${schema}.outbox_delivery where status = 'PENDING'`,
    )
    const back = rows.map(({ event_id }) => event_id)
    const known = new Set([...back, ...(await readHistory(witness, schema)).map(({ eventId }) => eventId)])
    return events.every(({ eventId }) => known.has(eventId))
  })
}

/** A worker with all of it in hand. */
async function victimWith(
  database: FaultDatabase,
  events: readonly PublishedEvent[],
): Promise<WorkerProcess> {
  const victim = new WorkerProcess(
    workerOn(database, 'victim', SUBSCRIPTION, { handlers: { hold: true }, leaseMs: LEASE_MS }),
  )
  await victim.told('started')
  await joined(database, SUBSCRIPTION.name)
  await publish(database, events)
  await comes('all are in its hand', () => {
    const taken = victim.of('claimed').reduce((sum, { count = 0 }) => sum + count, 0)
    return taken === events.length && victim.of('begun').length === KEYS
  })
  return victim
}

describe('kill -9 of a worker that cannot write a result, because somebody has its row locked', () => {
  test.concurrent.each([
    { when: 'before', title: 'let go before another worker comes' },
    { when: 'after', title: 'let go after another worker has come' },
  ])('E9 U4 $title: what comes again of a key brings along all that ran after it', async ({ when }) => {
    await using database = await createFaultDatabase()
    const events = walks(KEYS, 3)
    await using victim = await victimWith(database, events)
    const isLocked = ({ key, seq }: PublishedEvent): boolean => key !== FREE && seq === 0
    await using person = await Person.locking(database, events.filter(isLocked))
    victim.go()
    // Mostly the next of a key starts before it is known that the last cannot be written.
    await handledOrBack(
      database,
      events.filter(({ seq }) => seq === 1),
    )
    const [fourth, fifth] = [another(FREE, 3), another(FREE, 4)]
    const behind = another('walk-0', 3)
    // Results are written in the order they come: with this one the turn of those before it is over.
    await publish(database, [fourth])
    await becomesDone(database, fourth)

    await victim.kill()
    if (when === 'before') await person.letGo()
    await using heir = new WorkerProcess(workerOn(database, 'heir', SUBSCRIPTION, { leaseMs: LEASE_MS }))
    await publish(database, [fifth, behind])
    await becomesDone(database, fifth)
    if (when === 'after') await person.letGo()

    const committed = [...events, fourth, fifth, behind]
    await allDone(database, committed.length)
    const history = await readHistory(database.witness, database.schema)
    expect(overtakenBy(history)).toEqual([])
    const { lost, phantoms, inversions } = checkHistory(committed, history)
    expect({ lost, phantoms, inversions }).toEqual({ lost: [], phantoms: [], inversions: [] })
    // Nothing of a locked key was done before the kill, so all of it came again, in order; of the free one nothing did.
    const bySecond = (key: string): readonly number[] =>
      history.filter((run) => run.key === key && run.worker === heir.id).map(({ seq }) => seq)
    expect(['walk-0', 'walk-1', 'walk-2', FREE].map(bySecond)).toEqual([
      [0, 1, 2, 3],
      [0, 1, 2],
      [0, 1, 2],
      [4],
    ])
  })
})
