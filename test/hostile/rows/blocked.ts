import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { WorkerEvent } from '../../../src/index.ts'
import { PATIENCE_MS } from '../../support/patience-ms.ts'
import { compiledDirectory } from '../../support/program.ts'
import { deliver } from '../deliver.ts'
import { type Behaviour, borne } from '../row.ts'

const LEASE_MS = 1_000

/** Takes lapsed leases back as other workers do, and ends when there was one. */
const HEIR = `
  import pg from 'pg'
  const [file, connectionString, schema] = process.argv.slice(1)
  const { postgresStore } = await import(file)
  const pool = new pg.Pool({ connectionString })
  const { rows } = await pool.query('select id from outbox_subscription')
  const store = postgresStore({ pool, schema }).openWorker()
  while ((await store.recover(rows.map(({ id }) => id))).returned.size === 0);
  process.exit()`

/**
 * Blocks the event loop, so that no heartbeat can be sent, until the lease has lapsed and somebody else has taken it back.
 * In the same process nobody could, and who comes first after the block, a heartbeat or housekeeping, would be chance.
 */
function blockUntilLost(url: string, schema: string): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * LEASE_MS)
  const file = pathToFileURL(join(compiledDirectory, 'src', 'store', 'postgres', 'index.js')).href
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '--eval', HEIR, file, url, schema],
    { encoding: 'utf8', timeout: PATIENCE_MS },
  )
  if (status !== 0) throw new Error(`The lease was not taken back: ${stderr}`)
}

const ENDS: readonly WorkerEvent['kind'][] = ['leaseLost', 'handled', 'retried', 'dead']

/** A handler that is late, and how its runs ended. A machine so slow that the second one is late too makes no difference. */
export const blocked: Behaviour = borne(
  'a handler blocks the event loop for two leases',
  'fenced once somebody else has taken the lease back; delivered again: DONE',
  { status: 'DONE', ranAgain: true, wasFenced: true, others: ['handled'] },
  async () => {
    let runs = 0
    const ends: WorkerEvent['kind'][] = []
    const others = (): readonly WorkerEvent['kind'][] => ends.filter((kind) => kind !== 'leaseLost')
    const { status } = await deliver({
      // Not by the number of the attempt: whoever takes a lease back gives the attempt back too.
      handler: ({ url, schema }) => {
        runs += 1
        if (runs === 1) blockUntilLost(url, schema)
      },
      options: { maxAttempts: 3 },
      worker: { leaseMs: LEASE_MS, housekeepingMs: 10 },
      // In either order, as two statements write them; what is neither is the end too, and fails.
      until: ({ kind }) => {
        if (ENDS.includes(kind)) ends.push(kind)
        return (
          others().some((end) => end !== 'handled') || (others().length > 0 && ends.includes('leaseLost'))
        )
      },
    })
    return { status, ranAgain: runs > 1, wasFenced: ends.includes('leaseLost'), others: others() }
  },
)
