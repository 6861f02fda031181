import { Session } from 'node:inspector'
import { createOutbox, defineEvents, unchecked } from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import type { LoadedFiles, LoadedFilesConfig } from '../support/loaded-files.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'

// Which of our files a worker loads, until it has started and until an event is dead: node loaded-files.js <LoadedFilesConfig as JSON>
const config = JSON.parse(process.argv[2] ?? '{}') as LoadedFilesConfig

const loaded: string[] = []
const session = new Session()
session.connect()
session.on('Debugger.scriptParsed', ({ params: { url } }) => {
  if (url.includes('/src/')) loaded.push(url.slice(url.lastIndexOf('/src/') + 1))
})
session.post('Debugger.enable')

const pool = sturdyPool({ connectionString: config.url })
const events = defineEvents({
  OrderPlaced: { stream: 'shop.order', aggregate: 'order', schema: unchecked<{ n: number }>() },
})
const outbox = createOutbox({ store: postgresStore({ pool, schema: config.schema }), events })
const refuse = (): void => {
  throw new Error('refused')
}
const subscription = outbox.subscription('mirror', {
  engine: config.engine,
  maxAttempts: 1,
  on: { '*': refuse },
})
let tellDead: () => void = () => undefined
const dead = new Promise<void>((resolve) => {
  tellDead = resolve
})
const worker = outbox.worker([subscription], { observers: [({ kind }) => kind === 'dead' && tellDead()] })
await worker.start()
const atStart = loaded.splice(0)
await outbox.inTransaction(pool, (tx) =>
  outbox.publish(tx, 'OrderPlaced', { aggregateId: 'a', payload: { n: 1 } }),
)
await dead
await worker.stop()
await pool.end()
process.stdout.write(`${JSON.stringify({ atStart, later: loaded } satisfies LoadedFiles)}\n`)
