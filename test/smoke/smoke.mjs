// What a user gets from the packed package, on the Node that runs this: every door opens, a server starts, and an event
// published in a transaction reaches its handler, while one that was rolled back does not.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import * as root from 'commitpost'
import manifest from 'commitpost/package.json' with { type: 'json' }
import * as postgres from 'commitpost/postgres'
import * as testing from 'commitpost/testing'
import pg from 'pg'

/** Doors that open only where something else is installed, which it is not here, and what that is. */
const NEEDS = { './otel': '@opentelemetry/api' }

for (const path of Object.keys(manifest.exports)) {
  if (path !== './package.json') await open(path)
}
assert.equal(Object.keys(manifest.dependencies ?? {}).length, 0, 'the package has dependencies')

const server = await testing.startEmbeddedPostgres()
const pool = new pg.Pool({ connectionString: server.url })
pool.on('error', () => undefined)
try {
  await postgres.migrateUp(pool)
  await pool.query('create table orders (id text primary key)')
  assert.deepEqual(await deliver(), ['order-1'])
  assert.deepEqual(statusByCommandLine().subscriptions[0].counts, {
    PENDING: 0,
    PROCESSING: 0,
    DONE: 1,
    DEAD: 0,
  })
} finally {
  await pool.end()
  await server.stop()
}
console.log(`ok  smoke test of commitpost ${manifest.version} on Node ${process.version}`)

/** Every door of the package. What it needs and does not find, it names. */
async function open(path) {
  const name = path.replace('.', 'commitpost')
  const opened = import(name)
  if (NEEDS[path] === undefined) {
    assert.ok(Object.keys(await opened).length > 0, `${name} exports nothing`)
  } else {
    await assert.rejects(opened, { code: 'ERR_MODULE_NOT_FOUND', message: new RegExp(NEEDS[path]) })
  }
}

/** Publishes once in a transaction that rolls back and once in one that commits. Returns what the handler got. */
async function deliver() {
  const events = root.defineEvents({
    OrderPlaced: { stream: 'shop.order', aggregate: 'order', schema: root.unchecked() },
  })
  const outbox = root.createOutbox({ store: postgres.postgresStore({ pool }), events })
  const handled = []
  let tell
  const settled = new Promise((resolve) => {
    tell = resolve
  })
  const receipts = root.subscription('receipts', {
    on: { OrderPlaced: ({ payload }) => handled.push(payload.id) },
  })
  const observers = [({ kind }) => (kind === 'handled' || kind === 'dead' ? tell() : undefined)]
  const worker = outbox.worker([receipts], { observers })
  await worker.active()
  await assert.rejects(place(outbox, 'order-0', new Error('changed my mind')), /changed my mind/)
  await place(outbox, 'order-1', null)
  await settled
  await worker.stop()
  return handled
}

function place(outbox, id, error) {
  return outbox.inTransaction(pool, async (tx) => {
    await tx.query('insert into orders values ($1)', [id])
    await outbox.publish(tx, 'OrderPlaced', { aggregateId: id, payload: { id } })
    if (error !== null) throw error
  })
}

/** The program as `npx commitpost` would run it. */
function statusByCommandLine() {
  const program = fileURLToPath(new URL('cli/main.js', import.meta.resolve('commitpost')))
  const args = [program, 'status', '--json', '--database', server.url]
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return JSON.parse(stdout)
}
