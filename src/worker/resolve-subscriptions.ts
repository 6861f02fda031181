import type { Catalogue } from '../event/catalogue.ts'
import { InvalidOptionsError } from '../runtime/errors.ts'
import {
  type ResolvedSubscription,
  resolveSubscription,
  subscriptionProblems,
} from './resolve-subscription.ts'
import type { Subscription } from './subscription.ts'

/**
 * Fills in the defaults of all subscriptions of a worker.
 * @throws InvalidOptionsError with the problems of all of them and those the caller found.
 */
export function resolveSubscriptions(
  catalogue: Catalogue,
  subscriptions: readonly Subscription<Catalogue, unknown>[],
  otherProblems: readonly string[],
): readonly ResolvedSubscription[] {
  const problems = [
    ...otherProblems,
    ...(subscriptions.length === 0 ? ['there must be at least one subscription'] : []),
    ...repeatedNames(subscriptions),
    ...subscriptions.flatMap((each) =>
      subscriptionProblems(catalogue, each).map((problem) => `subscription "${each.name}": ${problem}`),
    ),
  ]
  if (problems.length > 0) throw new InvalidOptionsError('the worker', problems)
  return subscriptions.map((each) => resolveSubscription(catalogue, each))
}

function repeatedNames(subscriptions: readonly Subscription<Catalogue, unknown>[]): readonly string[] {
  const names = subscriptions.map(({ name }) => name)
  const repeated = new Set(names.filter((name, index) => names.indexOf(name) !== index))
  return [...repeated].map((name) => `subscription "${name}" is listed more than once`)
}
