// A reader of the log whose handler never returns, and how much memory it has resident.
import pg from 'pg'
import { subscription } from '../../src/index.ts'
import { type BenchCatalogue, benchOutbox } from '../support/commitpost.ts'

const pool = new pg.Pool({ connectionString: process.argv[2] ?? '', max: 10 })
const never = new Promise<void>(() => undefined)
const stopped = subscription<BenchCatalogue, unknown>('stopped', {
  engine: 'stream',
  timeoutMs: null,
  on: { OrderPlaced: () => never },
})
const worker = benchOutbox(pool).worker([stopped], {
  observers: [({ kind }) => void (kind === 'streaming' && process.send?.('reading'))],
})
process.on('message', () => process.send?.(process.memoryUsage.rss()))
await worker.start()
