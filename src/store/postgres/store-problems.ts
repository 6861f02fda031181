import {
  isRecord,
  methodsProblem,
  recordProblem,
  unknownOptionProblems,
} from '../../runtime/option-checks.ts'
import { isPool } from './client.ts'

/** What is wrong with the options of a store, each as a sentence. */
export function storeProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the argument', options)]
  // Its properties are none of ours: one line says more than "there is no option" for each of them.
  if (options['pool'] === undefined && isPool(options)) {
    return ['the argument is a pool, but must be an object that holds it: postgresStore({ pool })']
  }
  return [
    ...unknownOptionProblems(options, ['pool', 'schema', 'clock']),
    isPool(options['pool']) ? null : 'pool must be a pool of clients, such as new pg.Pool()',
    methodsProblem('clock', options['clock'], ['now', 'monotonicMs', 'sleep']),
  ]
}
