// npm run bench -- core [--rounds 3] [--only drain,live] [--contenders graphile,unordered] [--events 200000] [--resume]
// Commitpost beside its peers: the same server, the same Node, the same work, one after the other in every round.
import { parseArgs } from 'node:util'
import { drainScenario } from './scenarios/drain.ts'
import { idleScenario } from './scenarios/idle.ts'
import { latencyScenario } from './scenarios/latency.ts'
import { liveScenario } from './scenarios/live.ts'
import { backlogScenario, fanOutScenario, hotKeysScenario, scalingScenario } from './scenarios/own-drains.ts'
import { publishScenario } from './scenarios/publish.ts'
import { Choice } from './support/choice.ts'
import { describeMachine, describeVersions } from './support/machine.ts'
import { print, progressLine } from './support/progress.ts'
import { printBars, printScenario } from './support/report.ts'
import { Results } from './support/results.ts'
import { type Circumstances, figuresPath, resumeResults, writeResults } from './support/results-file.ts'
import { FULL_EVENTS, type Scenario } from './support/scenario.ts'
import { type BenchDatabase, durableSettings, openBenchDatabase } from './support/server.ts'

const SCENARIOS: readonly Scenario[] = [
  drainScenario,
  hotKeysScenario,
  fanOutScenario,
  scalingScenario,
  backlogScenario,
  latencyScenario,
  publishScenario,
  idleScenario,
  liveScenario,
]

/** To be counted up when something else is measured and no setting of a scenario shows it. */
const METHOD_REVISION = 1

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: '' },
    contenders: { type: 'string', default: '' },
    events: { type: 'string', default: String(FULL_EVENTS) },
    resume: { type: 'boolean', default: false },
  },
})
const events = Number(values.events)
const rounds = Number(values.rounds)
const only = new Choice('--only', values.only)
const contenders = new Choice('--contenders', values.contenders)

await main()

async function main(): Promise<void> {
  only.refuseStrangers(SCENARIOS.map(({ name }) => name))
  const chosen = SCENARIOS.filter(({ name }) => only.takes(name))
  contenders.refuseStrangers([...new Set(chosen.flatMap((scenario) => scenario.contenders))])
  await using database = await openBenchDatabase()
  const circumstances = await circumstancesOf(database)
  const path = figuresPath('core', {
    isFullSize: events === FULL_EVENTS,
    isPart: !only.takesAll || !contenders.takesAll,
    isResumed: values.resume,
  })
  const results = values.resume ? await resumeResults(path, circumstances) : new Results()
  print(
    Object.entries({ ...circumstances.machine, ...circumstances.versions })
      .flat()
      .join(' '),
  )
  for (let round = 1; round <= rounds; round += 1) {
    for (const scenario of chosen) {
      await runRound(database, scenario, results, round)
      await writeResults(path, circumstances, results, SCENARIOS)
    }
  }
  progressLine('')
  for (const { name } of chosen) printScenario(results, name)
  printBars(SCENARIOS.flatMap((each) => each.bars(results)))
  print(`\nWritten to ${path}, with a chart beside it`)
}

async function circumstancesOf(database: BenchDatabase): Promise<Circumstances> {
  return {
    events,
    machine: describeMachine(),
    versions: describeVersions(database.version),
    server: await durableSettings(database),
    method: {
      revision: METHOD_REVISION,
      ...Object.fromEntries(SCENARIOS.map(({ name, method }) => [name, method])),
    },
  }
}

async function runRound(
  database: BenchDatabase,
  scenario: Scenario,
  results: Results,
  round: number,
): Promise<void> {
  await scenario.run({
    database,
    events,
    round: results.nextRound(scenario.name),
    results,
    includes: (contender) => contenders.takes(contender),
    progress: (text) => progressLine(`round ${round} of ${rounds}: ${text}`),
  })
}
