import type { Catalogue } from '../event/catalogue.ts'
import type { Meter } from '../observe/meter.ts'
import type { Tracing } from '../observe/tracing.ts'
import type { EventBus } from './event-bus.ts'
import { createPublisher, type PublisherOptions } from './publisher.ts'
import { tracedBus, traceHeaders } from './traced-bus.ts'

/** What a bus is made of that is counted and traced, where somebody asks for that. */
export interface ObservedBusOptions<C extends Catalogue, Tx>
  extends Omit<PublisherOptions<C, Tx>, 'onPublished'> {
  readonly metrics?: Meter
  readonly tracing?: Tracing
}

/** Makes the outbox's `EventBus`. */
export function createObservedBus<C extends Catalogue, Tx>(
  options: ObservedBusOptions<C, Tx>,
): EventBus<C, Tx> {
  const { metrics, tracing, ...publisher } = options
  const bus = createPublisher<C, Tx>({
    ...publisher,
    ...(metrics && { onPublished: metrics.published }),
    ...(tracing && { ambientHeaders: traceHeaders(tracing, publisher.ambientHeaders) }),
  })
  return tracing === undefined ? bus : tracedBus(bus, publisher.catalogue, tracing)
}
