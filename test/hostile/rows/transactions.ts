import pg from 'pg'
import { createOutbox, createOutboxRepository } from '../../../src/index.ts'
import { postgresStore } from '../../../src/store/postgres/index.ts'
import { borne, type Group, invalid, type Refusal, refused, wrong } from '../row.ts'
import { events, type HostileOutbox, type Scene } from '../scene.ts'
import { angry } from '../things.ts'

const good = { aggregateId: 1, payload: {} }

const handle = (does: string, tx: (scene: Scene) => unknown): Refusal =>
  refused(`publish(${does}, …)`, 'NOT_IN_TRANSACTION', 'pass that client, not the pool', (scene) =>
    scene.outbox.publish(wrong(tx(scene)), 'OrderPlaced', good),
  )

const otherClient = (does: string, tx: unknown): Refusal =>
  refused(
    `publish(${does}, …)`,
    'NOT_IN_TRANSACTION',
    'was given something without query(text, params)',
    (scene) => scene.outbox.publish(wrong(tx), 'OrderPlaced', good),
  )

const without = (does: string, run: Refusal['run']): Refusal =>
  refused(does, 'NOT_IN_TRANSACTION', 'was called without a transaction, so nothing was written', run)

const transaction = (does: string, says: string, args: (scene: Scene) => readonly unknown[]): Refusal =>
  invalid(`outbox.inTransaction(${does})`, says, (scene) => {
    const [pool, work, options] = args(scene)
    return scene.outbox.inTransaction(wrong(pool), wrong(work), wrong(options))
  })

const missing = (does: string, run: (outbox: HostileOutbox, scene: Scene) => unknown): Refusal =>
  refused(
    `${does} before \`migrate up\``,
    'SCHEMA_MISSING',
    'Create them with `commitpost migrate up --schema',
    (scene) => run(scene.unmigrated, scene),
  )

/** What `pg` has but does not declare. */
const wrongly = (client: object) => client as { getTransactionStatus(): unknown }

const countOf = async (pool: pg.Pool, eventId: string): Promise<string> => {
  const { rows } = await pool.query('select count(*) from outbox_event where event_id = $1', [eventId])
  return rows[0].count
}

const nothing = async (): Promise<void> => undefined
const handlers = { on: { OrderPlaced: nothing } }

/** An outbox whose server is not there: nothing listens on port 1. */
function unreachable(): HostileOutbox {
  const pool = new pg.Pool({ host: '127.0.0.1', port: 1, user: 'x', password: 'secret', database: 'x' })
  return createOutbox({ store: postgresStore({ pool }), events })
}

const away = (does: string, run: (outbox: HostileOutbox) => unknown): Refusal =>
  refused(
    `${does} while the server is away`,
    'STORE_UNAVAILABLE',
    'the database could not be reached: connect ECONNREFUSED',
    () => run(unreachable()),
  )

async function asStranger(scene: Scene): Promise<unknown> {
  const role = `${scene.schema}_stranger`
  await scene.pool.query(`create role ${role}`)
  const url = new URL(scene.url)
  url.searchParams.set('options', `-c role=${role}`)
  const pool = new pg.Pool({ connectionString: url.href, max: 1 })
  try {
    return await createOutbox({ store: postgresStore({ pool, schema: scene.schema }), events }).status()
  } finally {
    await pool.end()
    await scene.pool.query(`drop role ${role}`)
  }
}

export const transactions: Group = {
  title: 'Transactions and handles',
  rows: [
    without("publish('OrderPlaced', …)", ({ outbox }) =>
      outbox.publish(wrong('OrderPlaced'), wrong(good), wrong(undefined)),
    ),
    without('publishAll([…])', ({ outbox }) => outbox.publishAll(wrong([]), wrong(undefined))),
    without('publish(undefined, …)', ({ outbox }) => outbox.publish(wrong(undefined), 'OrderPlaced', good)),
    without('publish(null, …)', ({ outbox }) => outbox.publish(wrong(null), 'OrderPlaced', good)),
    without("publish('postgres://…', …)", ({ outbox }) =>
      outbox.publish(wrong('postgres://localhost'), 'OrderPlaced', good),
    ),
    handle('the pool', ({ pool }) => pool),
    otherClient('{}', {}),
    otherClient('{ query: 5 }', { query: 5 }),
    otherClient('a transaction of Drizzle', { query: { orders: { findMany: nothing } }, execute: nothing }),
    otherClient('a transaction of postgres.js', Object.assign(nothing, { unsafe: nothing })),
    handle('a mysql2 pool', () => ({ getConnection: nothing, query: nothing })),
    refused(
      'publish on a client without BEGIN',
      'NOT_IN_TRANSACTION',
      'Open a transaction (BEGIN)',
      async ({ pool, outbox }) => {
        const client = await pool.connect()
        try {
          return await outbox.publish(client, 'OrderPlaced', good)
        } finally {
          client.release()
        }
      },
    ),
    refused(
      'publish after a statement that failed',
      'TRANSACTION_ABORTED',
      'Roll it back and run it again',
      (scene) =>
        scene.inTransaction(async (tx) => {
          await tx.query('select 1/0').catch(() => undefined)
          return scene.outbox.publish(tx, 'OrderPlaced', good)
        }),
    ),
    borne('a handle whose query resolves with nothing', 'published: an id comes back', '1', async (scene) => {
      const id = await scene.inTransaction((tx) => {
        const query = async (text: string, params?: readonly unknown[]): Promise<never> => {
          await tx.query(text, params === undefined ? [] : [...params])
          return undefined as never
        }
        return scene.outbox.publish({ query }, 'OrderPlaced', good)
      })
      return countOf(scene.pool, id)
    }),
    transaction('undefined, work', 'pool must be a pool, such as new pg.Pool()', () => [undefined, nothing]),
    transaction('a client, work', 'and not one client of it', () => [new pg.Client(), nothing]),
    transaction('a client of a pool, work', 'and not one client of it', () => [
      { connect: nothing, query: nothing, release: nothing },
      nothing,
    ]),
    transaction('pool', 'work must be a function, but is null', ({ pool }) => [pool]),
    transaction('pool, work, null', 'the options must be an object, but is null', ({ pool }) => [
      pool,
      nothing,
      null,
    ]),
    transaction(
      "pool, work, { isolation: 'chaos' }",
      "isolation must be one of 'read committed'",
      ({ pool }) => [pool, nothing, { isolation: 'chaos' }],
    ),
    transaction(
      'pool, work, { retries: -1 }',
      'retries must be a whole number from 0 to 1000, but is -1',
      ({ pool }) => [pool, nothing, { retries: -1 }],
    ),
    transaction('pool, work, { retry: 3 }', 'there is no option "retry"', ({ pool }) => [
      pool,
      nothing,
      { retry: 3 },
    ]),
    transaction('pool, work, { afterCommit: 5 }', 'afterCommit must be a function, but is 5', ({ pool }) => [
      pool,
      nothing,
      { afterCommit: 5 },
    ]),
    refused(
      'inTransaction whose work hides an error',
      'TRANSACTION_ABORTED',
      'Nothing was written',
      ({ outbox, pool }) =>
        outbox.inTransaction(pool, async (tx) => {
          await outbox.publish(tx, 'OrderPlaced', good)
          await tx.query('select 1/0').catch(() => undefined)
        }),
    ),
    refused(
      'inTransaction whose afterCommit throws',
      'AFTER_COMMIT_FAILED',
      'Do not run the transaction again',
      ({ outbox, pool }) =>
        outbox.inTransaction(pool, nothing, {
          afterCommit: () => {
            throw new Error('x')
          },
        }),
    ),
    borne(
      'inTransaction whose work throws null',
      'rolled back, and null is thrown on',
      [null, '0'],
      async ({ outbox, pool }) => {
        const eventId = '0198c0de-0000-7000-8000-0000000000e1'
        const thrown: unknown = await outbox
          .inTransaction(pool, async (tx) => {
            await outbox.publish(tx, 'OrderPlaced', { ...good, eventId })
            return Promise.reject(null)
          })
          .catch((error: unknown) => error)
        return [thrown, await countOf(pool, eventId)]
      },
    ),
    borne(
      'inTransaction whose work throws a proxy that throws whenever it is touched',
      'rolled back, and the connection goes back to the pool outside any transaction',
      { status: 'I', isTheSame: true, count: '0' },
      async ({ outbox, url }) => {
        const pool = new pg.Pool({ connectionString: url, max: 1 })
        const eventId = '0198c0de-0000-7000-8000-0000000000e2'
        let used: unknown
        const work = async (tx: pg.PoolClient): Promise<never> => {
          used = tx
          await outbox.publish(tx, 'OrderPlaced', { ...good, eventId })
          return Promise.reject(angry())
        }
        await outbox.inTransaction(pool, work).catch(() => undefined)
        const client = await pool.connect()
        const status: unknown = wrongly(client).getTransactionStatus()
        client.release()
        const count = await countOf(pool, eventId)
        await pool.end()
        return { status, isTheSame: client === used, count }
      },
    ),
  ],
}

export const stores: Group = {
  title: 'Databases that are not as they should be',
  rows: [
    missing('publish', (outbox, scene) =>
      scene.inTransaction((tx) => outbox.publish(tx, 'OrderPlaced', good)),
    ),
    missing('status()', (outbox) => outbox.status()),
    missing('deadLetters.list()', (outbox) => outbox.deadLetters.list()),
    missing('deadLetters.count()', (outbox) => outbox.deadLetters.count()),
    missing('deadLetters.show()', (outbox) => outbox.deadLetters.show('1')),
    missing('deadLetters.retry()', (outbox) => outbox.deadLetters.retry('1', { operator: 'kim' })),
    missing('deadLetters.resolve()', (outbox) => outbox.deadLetters.resolve('1', { operator: 'kim' })),
    missing('pause()', (outbox) => outbox.pause('mailer', { operator: 'kim' })),
    missing('worker.start()', (outbox) => outbox.worker([outbox.subscription('mailer', handlers)]).start()),
    missing('repository.findPending()', async (outbox, { pool, schema }) => {
      const store = postgresStore({ pool, schema: `${schema}_none` })
      await using repository = createOutboxRepository({ outbox, store, subscription: 'poller' })
      return await repository.findPending(1).catch(async (error: unknown) => Promise.reject(error))
    }),
    away('status()', (outbox) => outbox.status()),
    away('deadLetters.list()', (outbox) => outbox.deadLetters.list()),
    away('worker.start()', (outbox) => outbox.worker([outbox.subscription('mailer', handlers)]).start()),
    refused(
      'status() by a role without rights',
      'STORE_REFUSED',
      '`commitpost roles sql` prints the rights',
      asStranger,
    ),
    refused(
      'status() on a pool that was ended',
      'STORE_UNAVAILABLE',
      'Cannot use a pool after calling end',
      async ({ url, schema }) => {
        const pool = new pg.Pool({ connectionString: url })
        await pool.end()
        return createOutbox({ store: postgresStore({ pool, schema }), events }).status()
      },
    ),
  ],
}
