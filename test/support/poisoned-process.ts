import { once } from 'node:events'
import type { FaultDatabase } from './fault-database.ts'
import { killProgram, startProgram } from './program.ts'
import type { StepName } from './steps.ts'
import type { Supervised } from './supervisor.ts'

/** One subscription of the program `poisoned-process`. */
export interface PoisonedSubscription {
  readonly name: string
  /** The one type of events that it takes. */
  readonly type: StepName
  readonly maxAttempts: number
  /** How long its handlers take, before they die of what is poisoned. */
  readonly takesMs: number
}

/** What the program `poisoned-process` is told, as JSON in its first argument. */
export interface PoisonedConfig {
  readonly url: string
  readonly schema: string
  readonly life: number
  /** The subscriptions of each of its workers. */
  readonly workers: readonly (readonly PoisonedSubscription[])[]
}

/** Several workers in one process, or several subscriptions of one, that poisoned events kill. */
export function poisonedProcess(
  { url, schema }: FaultDatabase,
  life: number,
  workers: PoisonedConfig['workers'],
): Supervised {
  const config: PoisonedConfig = { url, schema, life, workers }
  const program = startProgram('poisoned-process', [JSON.stringify(config)])
  program.stdin.on('error', () => undefined) // it may be dead by the time it is closed
  program.stdout.resume()
  return { ended: once(program, 'exit'), kill: () => killProgram(program) }
}
