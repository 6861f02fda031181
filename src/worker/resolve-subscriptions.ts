import type { Catalogue } from '../event/catalogue.ts'
import { isRecord, refuseProblems, shown } from '../runtime/option-checks.ts'
import { type ResolvedSubscription, resolveSubscription } from './resolve-subscription.ts'
import type { Subscription } from './subscription.ts'
import { subscriptionProblems } from './subscription-problems.ts'

/**
 * Fills in the defaults of all subscriptions of a worker.
 * @throws InvalidOptionsError with the problems of all of them and those the caller found.
 */
export function resolveSubscriptions(
  catalogue: Catalogue,
  subscriptions: readonly Subscription<Catalogue, unknown>[],
  otherProblems: readonly string[],
): readonly ResolvedSubscription[] {
  refuseProblems('the worker', [...otherProblems, ...listProblems(catalogue, subscriptions)])
  return subscriptions.map((each) => resolveSubscription(catalogue, each))
}

function listProblems(catalogue: Catalogue, subscriptions: readonly unknown[]): readonly string[] {
  if (!Array.isArray(subscriptions) || subscriptions.length === 0) {
    return ['there must be a list of at least one subscription']
  }
  const declared = subscriptions.filter(isSubscription)
  const strangers = subscriptions.flatMap((each, index) =>
    isSubscription(each) ? [] : [`[${index}] must be made with subscription(), but is ${shown(each)}`],
  )
  return [
    ...strangers,
    ...repeatedNames(declared),
    ...declared.flatMap(({ name, options }) =>
      subscriptionProblems(catalogue, name, options).map(
        (problem) => `subscription ${shown(name)}: ${problem}`,
      ),
    ),
  ]
}

function isSubscription(value: unknown): value is Subscription<Catalogue, unknown> {
  return isRecord(value) && 'name' in value && 'options' in value
}

function repeatedNames(subscriptions: readonly Subscription<Catalogue, unknown>[]): readonly string[] {
  const names = subscriptions.map(({ name }) => name)
  const repeated = new Set(names.filter((name, index) => names.indexOf(name) !== index))
  return [...repeated].map((name) => `subscription ${shown(name)} is listed more than once`)
}
