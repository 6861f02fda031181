// What a user gets from the packed package, on the Node that runs this: every door opens, and a server starts.
import assert from 'node:assert/strict'
import * as root from 'commitpost'
import manifest from 'commitpost/package.json' with { type: 'json' }
import * as postgres from 'commitpost/postgres'
import * as testing from 'commitpost/testing'
import pg from 'pg'

for (const [name, door] of Object.entries({ root, postgres, testing })) {
  assert.ok(Object.keys(door).length > 0, `commitpost (${name}) exports nothing`)
}
assert.equal(Object.keys(manifest.dependencies ?? {}).length, 0, 'the package has dependencies')

const server = await testing.startEmbeddedPostgres()
try {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const { rows } = await client.query('select 40 + 2 as answer')
  assert.deepEqual(rows, [{ answer: 42 }])
  await client.end()
} finally {
  await server.stop()
}
console.log(`ok  smoke test of commitpost ${manifest.version} on Node ${process.version}`)
