import { once } from 'node:events'
import { buryWorker, type FaultDatabase, urlFor } from './fault-database.ts'
import { killProgram, startProgram } from './program.ts'
import type { StepName } from './steps.ts'
import { type Supervised, Supervisor } from './supervisor.ts'

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
  readonly workers: readonly {
    readonly workerId: string
    readonly subscriptions: readonly PoisonedSubscription[]
  }[]
}

/** Several workers in one process, or several subscriptions of one, that poisoned events kill: again and again. */
export function supervisePoisoned(
  database: FaultDatabase,
  workers: readonly (readonly PoisonedSubscription[])[],
): Supervisor<Supervised> {
  const idOf = (n: number, life: number): string => `worker-${n}-of-life-${life}`
  const start = (life: number): Supervised => {
    const config: PoisonedConfig = {
      // They share their sessions, which go by the name of the first.
      url: urlFor(database, idOf(0, life)),
      schema: database.schema,
      workers: workers.map((subscriptions, n) => ({ workerId: idOf(n, life), subscriptions })),
    }
    const program = startProgram('poisoned-process', [JSON.stringify(config)])
    program.stdin.on('error', () => undefined) // it may be dead by the time it is closed
    program.stdout.resume()
    return { ended: once(program, 'exit'), kill: () => killProgram(program) }
  }
  return new Supervisor(start, async (life) => {
    for (const n of workers.keys()) await buryWorker(database, idOf(n, life))
  })
}
