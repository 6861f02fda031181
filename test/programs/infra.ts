import { constants } from 'node:os'
import { parseArgs } from 'node:util'
import { followTopics } from '../support/infra/follow-topics.ts'
import { registerInCompose } from '../support/infra/register-in-compose.ts'
import { startStack } from '../support/infra/stack.ts'
import { whereToLook } from '../support/infra/where-to-look.ts'

// node infra.js               PostgreSQL, Kafka and Kafka Connect with the connector of ivm, until Ctrl-C
// node infra.js register      the connector, in what infra/compose.yaml has started
const { positionals } = parseArgs({ allowPositionals: true })

if (positionals[0] === 'register') {
  console.log(whereToLook(await registerInCompose(), { docker: true }))
} else {
  let isReady = false
  const interrupted = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        console.log('Stopping ...')
        // What has been started by then goes with this process.
        if (!isReady) process.exit(128 + constants.signals[signal])
        resolve()
      })
    }
  })
  console.log('Starting PostgreSQL, Kafka and Kafka Connect; the first time their jars are fetched ...')
  const stack = await startStack()
  isReady = true
  try {
    console.log(whereToLook(stack.places, { docker: false }))
    await using _ = await followTopics(stack.places.bootstrap, (line) => console.log(line))
    await interrupted
  } finally {
    await stack.stop()
  }
}
