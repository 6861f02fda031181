import type { Catalogue } from '../event/catalogue.ts'
import { refuseProblems, shown } from '../runtime/option-checks.ts'
import type { ExhaustiveHandlers, SubscriptionHandlers, SubscriptionOptions } from './subscription-options.ts'
import { declarationProblems } from './subscription-problems.ts'

/** A named consumer with its own progress, retries, order, pause and dead letters. */
export interface Subscription<C extends Catalogue, Tx> {
  /** 1 to 100 letters, digits, dots, dashes and underscores. */
  readonly name: string
  readonly options: SubscriptionOptions<C, Tx>
}

/**
 * Declares a subscription. Written inside `outbox.worker([…])` its handlers are typed by the outbox's catalogue;
 * elsewhere use `outbox.subscription`, which does the same and also sees handlers for events that do not exist.
 *
 * @throws InvalidOptionsError with all problems of the name and the options.
 */
export function subscription<C extends Catalogue, Tx>(
  name: string,
  options: NoInfer<SubscriptionOptions<C, Tx>>,
): Subscription<C, Tx> {
  refuseProblems(`subscription ${shown(name)}`, declarationProblems(name, options))
  return { name, options }
}

/** The same handlers, but the compiler insists that none of the catalogue's events is left out. */
export function exhaustive<C extends Catalogue, Tx>(
  handlers: ExhaustiveHandlers<C, Tx>,
): SubscriptionHandlers<C, Tx> {
  return handlers as SubscriptionHandlers<C, Tx>
}
