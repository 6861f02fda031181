import { setTimeout as sleep } from 'node:timers/promises'
import type { PoisonedConfig, PoisonedSubscription } from '../support/poisoned-process.ts'
import type { Step } from '../support/steps.ts'
import { stepOutbox } from '../support/steps.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'

// Workers of one process that a poisoned event kills: node poisoned-process.js <PoisonedConfig as JSON>
const { url, schema, workers } = JSON.parse(process.argv[2] ?? '{}') as PoisonedConfig
const outbox = stepOutbox(sturdyPool({ connectionString: url }), schema)

function subscribe({ name, type, maxAttempts, takesMs }: PoisonedSubscription) {
  const handle = async ({ payload }: { readonly payload: Step }): Promise<void> => {
    await sleep(takesMs)
    if (payload.poison === true) process.kill(process.pid, 'SIGKILL')
  }
  return outbox.subscription(name, { maxAttempts, pollMs: 100, on: { [type]: handle } })
}

process.stdin.on('end', () => process.exit(70)) // whoever started this is gone
process.stdin.resume()

await Promise.all(
  workers.map(({ workerId, subscriptions }) =>
    outbox
      .worker(subscriptions.map(subscribe), {
        // Whoever watches ends it at each death. One that ended because the machine stood still would count as a crash.
        leaseMs: 60_000,
        housekeepingMs: 100,
        listen: false,
        workerId,
      })
      .start(),
  ),
)
