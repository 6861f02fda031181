import type { Catalogue } from '../event/catalogue.ts'
import { isRecord, refuseProblems, shown } from '../runtime/option-checks.ts'
import { type ResolvedSubscription, resolveSubscription } from './resolve-subscription.ts'
import type { Relay, Subscription } from './subscription.ts'
import { relayProblems, subscriptionProblems } from './subscription-problems.ts'

type AnySubscription = Subscription<Catalogue, unknown> | Relay

/**
 * Fills in the defaults of all subscriptions of a worker.
 * @throws InvalidOptionsError with the problems of all of them and those the caller found.
 */
export function resolveSubscriptions(
  catalogue: Catalogue,
  subscriptions: readonly AnySubscription[],
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
      problemsOf(catalogue, name, options).map((problem) => `subscription ${shown(name)}: ${problem}`),
    ),
  ]
}

function problemsOf(catalogue: Catalogue, name: unknown, options: unknown): readonly string[] {
  const isRelay = isRecord(options) && 'via' in options
  return isRelay ? relayProblems(name, options) : subscriptionProblems(catalogue, name, options)
}

function isSubscription(value: unknown): value is AnySubscription {
  return isRecord(value) && 'name' in value && 'options' in value
}

function repeatedNames(subscriptions: readonly AnySubscription[]): readonly string[] {
  const names = subscriptions.map(({ name }) => name)
  const repeated = new Set(names.filter((name, index) => names.indexOf(name) !== index))
  return [...repeated].map((name) => `subscription ${shown(name)} is listed more than once`)
}
