import { expect, test } from 'vitest'
import { createOutbox, verifyWebhook } from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { Receiver } from '../alert/receiver.ts'
import { type AlertWorkerConfig, shopOrders } from '../support/alert-worker-config.ts'
import { createTestDatabaseWithTables } from '../support/database.ts'
import { bePatient, comes } from '../support/patience.ts'
import { firstLine, killProgram, type Program, startProgram } from '../support/program.ts'

bePatient()

const SECRET = 'a secret of enough length'
const WORKERS = ['w1', 'w2', 'w3', 'w4']
const LETTERS = 8

interface Posted {
  readonly data: {
    readonly kind: string
    readonly rule: string
    readonly key: string
    readonly figures: { readonly workers?: readonly { readonly workerId: string }[] }
  }
}

test('D5 D6 of four worker processes exactly one tells: of each letter, of the threshold, of one that is killed', async () => {
  await using receiver = await Receiver.start()
  await using database = await createTestDatabaseWithTables()
  const { pool, url, schema } = database
  const outbox = createOutbox({ store: postgresStore({ pool, schema }), events: shopOrders })
  const programs = new Map<string, Program>()
  const posted = (): readonly Posted['data'][] => receiver.json<Posted>().map(({ data }) => data)
  const keys = (rule: string): readonly string[] =>
    posted().flatMap((alert) => (alert.rule === rule ? [alert.key] : []))
  try {
    for (const workerId of WORKERS) {
      const config: AlertWorkerConfig = {
        workerId,
        url,
        schema,
        receiver: receiver.url,
        secret: SECRET,
        unresolved: LETTERS,
      }
      programs.set(workerId, startProgram('alert-worker', [JSON.stringify(config)]))
    }
    await Promise.all([...programs.values()].map((program) => firstLine(program)))

    for (let n = 1; n <= LETTERS; n += 1) {
      await outbox.inTransaction(pool, (tx) =>
        outbox.publish(tx, 'OrderPlaced', { aggregateId: n, payload: { n } }),
      )
    }
    await comes('all letters are told of', () => keys('deadLetter').length >= LETTERS)
    await comes('the threshold is told of', () => keys('unresolved').length >= 1)

    // One that is killed between telling and writing it down leaves it to be told again.
    await comes('all of it is written down', async () => {
      const { rows } = await pool.query(
        `select (select count(*) from outbox_dead_letter where told_at is null) = 0
                and (select told_at is not null from outbox_alarm where key = 'unresolved') as written`,
      )
      return rows[0]?.written === true
    })
    await killProgram(programs.get('w2') as Program)
    const ofKilled = (): readonly Posted['data'][] =>
      posted().filter(({ figures }) => figures.workers?.some(({ workerId }) => workerId === 'w2'))
    await comes('the killed one is told of', () => ofKilled().length >= 1)

    // Everything has been looked at again, by whoever it was.
    const looked = async (): Promise<number> =>
      Number((await pool.query('select epoch from outbox_monitor')).rows[0]?.epoch)
    const before = await looked()
    await comes('ten more looks', async () => (await looked()) >= before + 10)
    expect(keys('deadLetter').toSorted()).toEqual(
      Array.from({ length: LETTERS }, (_, n) => `deadLetter:${n + 1}`).toSorted(),
    )
    expect(keys('unresolved')).toEqual(['unresolved'])
    expect(ofKilled()).toMatchObject([{ kind: 'notice', rule: 'workerMissing' }])
    const genuine = receiver.requests.map(({ headers, body }) =>
      verifyWebhook({ headers, body, secret: SECRET }),
    )
    expect(genuine.every((isGenuine) => isGenuine)).toBe(true)
  } finally {
    await Promise.all([...programs.values()].map(killProgram))
  }
})
