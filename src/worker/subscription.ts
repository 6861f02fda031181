import type { Catalogue } from '../event/catalogue.ts'
import { refuseProblems, shown } from '../runtime/option-checks.ts'
import type {
  ExhaustiveHandlers,
  RelayOptions,
  SubscriptionHandlers,
  SubscriptionOptions,
} from './subscription-options.ts'
import { declarationProblems, relayProblems } from './subscription-problems.ts'

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

/** A subscription that hands its events to another system in place of handlers. */
export interface Relay {
  /** 1 to 100 letters, digits, dots, dashes and underscores. */
  readonly name: string
  readonly options: RelayOptions
}

/**
 * Declares a subscription that hands its events to a transport: `relay('to-kafka', { via: kafka({ producer }) })`. It has
 * its own progress, retries, order and dead letters like any other.
 *
 * @throws InvalidOptionsError with all problems of the name and the options.
 */
export function relay(name: string, options: RelayOptions): Relay {
  refuseProblems(`relay ${shown(name)}`, relayProblems(name, options))
  return { name, options }
}

/** The same handlers, but the compiler insists that none of the catalogue's events is left out. */
export function exhaustive<C extends Catalogue, Tx>(
  handlers: ExhaustiveHandlers<C, Tx>,
): SubscriptionHandlers<C, Tx> {
  return handlers as SubscriptionHandlers<C, Tx>
}
