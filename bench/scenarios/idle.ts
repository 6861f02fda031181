import { dropSchemas } from '../support/clean-up.ts'
import { prepareSchema } from '../support/commitpost.ts'
import type { IdleReport, IdleTask } from '../support/protocol.ts'
import { bar } from '../support/results.ts'
import { FULL_EVENTS, type Scenario } from '../support/scenario.ts'
import { startProgram } from '../support/start-program.ts'
import { turned } from '../support/turned.ts'

const CONTENDERS = [
  { name: 'commitpost unordered', order: 'none' },
  { name: 'commitpost ordered', order: 'aggregate' },
] as const

const WINDOW = { settleSeconds: 3, seconds: 10 } as const

/** A worker with nothing to do. */
export const idleScenario: Scenario = {
  name: 'idle',
  contenders: CONTENDERS.map(({ name }) => name),
  method: { contenders: CONTENDERS, ...WINDOW },
  run: async (session) => {
    const { database, events, round, results } = session
    for (const { name, order } of turned(CONTENDERS, round)) {
      if (!session.includes(name)) continue
      session.progress(`idle: ${name}`)
      await dropSchemas(database)
      await prepareSchema(database.pool, { count: 1, order, batchSize: 1_000, concurrency: 100 })
      const seconds = Math.max(1, WINDOW.seconds * Math.min(1, events / FULL_EVENTS))
      const task: IdleTask = { ...WINDOW, url: database.url, order, seconds }
      const program = startProgram<IdleReport>('idle', task)
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
