import { dropSchemas } from '../support/clean-up.ts'
import { prepareSchema } from '../support/commitpost.ts'
import type { IdleReport } from '../support/protocol.ts'
import { bar } from '../support/results.ts'
import type { Scenario } from '../support/scenario.ts'
import { startProgram } from '../support/start-program.ts'

const CONTENDERS = [
  { name: 'commitpost unordered', order: 'none' },
  { name: 'commitpost ordered', order: 'aggregate' },
] as const

const SECONDS = 10

/** A worker with nothing to do. */
export const idleScenario: Scenario = {
  name: 'idle',
  contenders: CONTENDERS.map(({ name }) => name),
  run: async (session) => {
    const { database, events, round, results } = session
    for (const { name, order } of CONTENDERS) {
      if (!session.includes(name)) continue
      session.progress(`idle: ${name}`)
      await dropSchemas(database)
      await prepareSchema(database.pool, { count: 1, order, batchSize: 1_000, concurrency: 100 })
      const seconds = Math.max(1, Math.min(SECONDS, (SECONDS * events) / 200_000))
      const program = startProgram<IdleReport>('idle', { url: database.url, order, seconds })
      await program.ready
      program.tell({ type: 'go' })
      const { queriesPerSecond } = await program.report
      results.add({ scenario: 'idle', contender: name, round, figures: { queriesPerSecond } })
    }
  },
  bars: (results) =>
    CONTENDERS.flatMap(({ name }) =>
      bar(
        `queries a second of an idle worker: ${name}`,
        results.median('idle', name, 'queriesPerSecond'),
        'under',
        5,
      ),
    ),
}
