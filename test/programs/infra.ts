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
  const interrupted = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
  console.log('Starting PostgreSQL, Kafka and Kafka Connect; the first time their jars are fetched ...')
  const stack = await startStack()
  try {
    console.log(whereToLook(stack.places, { docker: false }))
    await using _ = await followTopics(stack.places.bootstrap, (line) => console.log(line))
    await interrupted
  } finally {
    console.log('Stopping ...')
    await stack.stop()
  }
}
