// npm run bench -- stream [--rounds 3] [--only kafka] [--events 200000] [--keys 10000]
// The log stream beside the queue, pg-transactional-outbox and Debezium: to a no-op and to the same Kafka.
import { parseArgs } from 'node:util'
import { startKafka } from '../test/support/kafka/broker.ts'
import { startConnect } from '../test/support/kafka/connect.ts'
import { kafkaAvailable } from '../test/support/kafka/jars.ts'
import { STREAM_METHOD, STREAM_SCENARIOS } from './stream/scenarios.ts'
import { type Stage } from './stream/stage.ts'
import { Topics } from './stream/topics.ts'
import { describeMachine } from './support/machine.ts'
import { peerNodeVersion, peerVersion } from './support/peers.ts'
import { print, progressLine } from './support/progress.ts'
import { printBars, printScenario } from './support/report.ts'
import { Results } from './support/results.ts'
import { figuresPath, writeFigures } from './support/results-file.ts'
import { FULL_EVENTS } from './support/scenario.ts'
import { durableSettings, openBenchDatabase } from './support/server.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: '' },
    events: { type: 'string', default: String(FULL_EVENTS) },
    keys: { type: 'string', default: '10000' },
  },
})
const events = Number(values.events)
const chosen = STREAM_SCENARIOS.filter(
  ({ name }) => values.only === '' || values.only.split(',').includes(name),
)
const path = figuresPath('stream', {
  isFullSize: events === FULL_EVENTS,
  isPart: values.only !== '',
  isResumed: false,
})

await using database = await openBenchDatabase()
const needsKafka = chosen.some(({ name }) => name.startsWith('kafka'))
const kafka = needsKafka && kafkaAvailable() ? await startKafka({ jvm: 'full' }) : null
const connect = kafka === null ? null : await startConnect({ bootstrap: kafka.bootstrap, jvm: 'full' })
try {
  await measure(kafka === null || connect === null ? null : { topics: new Topics(kafka.bootstrap), connect })
} finally {
  await connect?.stop()
  await kafka?.stop()
}

async function measure(servers: Stage['servers']): Promise<void> {
  const results = new Results()
  const circumstances = {
    events,
    keys: Number(values.keys),
    machine: describeMachine(),
    versions: {
      node: process.version,
      postgres: database.version,
      'pg-transactional-outbox': peerVersion('pg-transactional-outbox'),
      'node of pg-transactional-outbox': peerNodeVersion(),
    },
    server: await durableSettings(database),
    method: STREAM_METHOD,
  }
  for (let round = 1; round <= Number(values.rounds); round += 1) {
    const progress = (text: string): void => progressLine(`round ${round} of ${values.rounds}: ${text}`)
    const stage = { database, servers, events, keys: circumstances.keys, round, results, progress }
    for (const scenario of chosen) {
      await scenario.run(stage)
      await writeFigures(path, circumstances, results, barsOf(results))
    }
  }
  progressLine('')
  for (const { name } of chosen) printScenario(results, name)
  printBars(barsOf(results))
  print(`\nWritten to ${path}`)
}

function barsOf(results: Results): ReturnType<(typeof STREAM_SCENARIOS)[number]['bars']> {
  return STREAM_SCENARIOS.flatMap((scenario) => scenario.bars(results))
}
