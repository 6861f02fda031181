import type { InTransactionOptions } from '../publish/in-transaction.ts'
import { functionProblem, recordProblem } from '../runtime/option-checks.ts'
import { property } from '../runtime/property.ts'
import type { WakeBell } from './wake-bell.ts'

/** The options with the bell rung after the commit, before the caller's own hook. */
export function wakingAfterCommit(options: InTransactionOptions, bell: WakeBell): InTransactionOptions {
  // What is no object, or no hook, is for inTransaction to refuse.
  const isHook = functionProblem('afterCommit', property(options, 'afterCommit')) === null
  if (recordProblem('the options', options) !== null || !isHook) return options
  return {
    ...options,
    afterCommit: async () => {
      bell.ring()
      await options.afterCommit?.()
    },
  }
}
