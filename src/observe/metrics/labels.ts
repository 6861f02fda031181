import type { Catalogue } from '../../event/catalogue.ts'
import { BoundedLabel } from './bounded-label.ts'

/** How many values that no catalogue names a label takes. */
const MOST_STRANGERS = 100

/** The labels that come from events and subscriptions, each with a bound on how many values it takes. */
export interface BoundedLabels {
  readonly stream: BoundedLabel
  readonly eventType: BoundedLabel
  readonly subscription: BoundedLabel
}

/** Knows the streams and stored types of the catalogue, where there is one; of all others the first hundred. */
export function boundedLabels(catalogue: Pick<Catalogue, 'events'> | undefined): BoundedLabels {
  const specs = catalogue?.events ?? []
  return {
    stream: new BoundedLabel(
      specs.map(({ stream }) => stream),
      MOST_STRANGERS,
    ),
    eventType: new BoundedLabel(
      specs.map(({ storedAs }) => storedAs),
      MOST_STRANGERS,
    ),
    subscription: new BoundedLabel([], MOST_STRANGERS),
  }
}
