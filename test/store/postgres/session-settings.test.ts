import { expect, test } from 'vitest'
import { createOutbox, defineEvents, unchecked, type WorkerEvent } from '../../../src/index.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { property } from '../../../src/runtime/property.ts'
import type { PgPool } from '../../../src/store/postgres/client.ts'
import { postgresStore } from '../../../src/store/postgres/index.ts'
import { PostgresWorkerStore } from '../../../src/store/postgres/worker-store.ts'
import { eventually } from '../../support/program.ts'
import {
  FIT_SETTINGS,
  SETTLING_SETTINGS,
  seenSettings,
  setHostile,
  watchSettings,
} from '../../support/seen-settings.ts'
import { column, insertEvent, one, refusal, subscribe } from './fixtures.ts'
import { createRolesDatabase, type RolesDatabase } from './role-fixtures.ts'

const events = defineEvents({
  OrderPlaced: { stream: 'shop.order', aggregate: 'order', schema: unchecked<object>() },
})

async function hostileDatabase(): Promise<RolesDatabase> {
  const db = await createRolesDatabase()
  await setHostile(db.pool, db.login('worker'))
  await watchSettings(db.pool, db.schema)
  return db
}

/** Lets a worker on this pool join, and handle what is published then. Returns what went wrong beside it. */
async function work(db: RolesDatabase, pool: PgPool): Promise<readonly WorkerEvent[]> {
  const errors: WorkerEvent[] = []
  const outbox = createOutbox({ store: postgresStore({ pool, schema: db.schema }), events, notify: false })
  const handle = async (): Promise<void> => undefined
  await using worker = outbox.worker(
    [
      outbox.subscription('ordered', { order: 'aggregate', on: { OrderPlaced: handle } }),
      outbox.subscription('unordered', { on: { OrderPlaced: handle } }),
    ],
    { observers: [(event) => void (event.kind === 'error' && errors.push(event))] },
  )
  await worker.active()
  for (let n = 0; n < 20; n += 1) await insertEvent(db.pool, { aggregateId: String(n % 5) })
  worker.wake()
  await eventually(
    'all is done',
    async () =>
      (await one(db.pool, `select count(*)::int from outbox_delivery where status = 'DONE'`)) === 40,
  )
  // That nothing was heard for two seconds is told too, and is as it may be.
  return errors.filter((event) => event.kind !== 'error' || property(event.error, 'code') !== 'NOT_LISTENING')
}

test('a worker works under whatever its role has set, on connections of its own', async () => {
  await using db = await hostileDatabase()

  expect(await work(db, db.as.worker)).toEqual([])

  expect(await seenSettings(db.pool, db.schema)).toEqual([SETTLING_SETTINGS, FIT_SETTINGS])
})

test('and on a pool that it has to share, whose sessions it leaves as they were', async () => {
  await using db = await hostileDatabase()
  const pool = db.as.worker
  const foreign: PgPool = { connect: () => pool.connect(), end: () => pool.end() }

  expect(await work(db, foreign)).toEqual([])

  expect(await seenSettings(db.pool, db.schema)).toEqual([SETTLING_SETTINGS, FIT_SETTINGS])
  const client = await pool.connect()
  expect(await column(client, `select name from pg_settings where source = 'session'`)).toEqual([])
  client.release()
})

test('without that, the first thing it writes is refused', async () => {
  await using db = await hostileDatabase()
  const store = new PostgresWorkerStore({ pool: db.as.worker, own: false }, db.quoted, systemClock)
  const subscriptionId = await subscribe(db)
  await insertEvent(db.pool)

  const claim = store.claim({ subscriptionId, workerId: 'naive', limit: 1, leaseMs: 60_000 })

  expect(await refusal(claim)).toBe('25006')
})
