import type { Catalogue } from '../event/catalogue.ts'
import type { EventHeaders } from '../event/event.ts'
import type { PublishingInfo, Tracing } from '../observe/tracing.ts'
import { shown } from '../runtime/option-checks.ts'
import { property } from '../runtime/property.ts'
import type { EventBus } from './event-bus.ts'

/** The bus with every call as part of a trace. */
export function tracedBus<C extends Catalogue, Tx>(
  bus: EventBus<C, Tx>,
  catalogue: C,
  tracing: Tracing,
): EventBus<C, Tx> {
  return {
    publish: (tx, name, input) =>
      tracing.publishing({ events: [infoOf(catalogue, name)] }, () => bus.publish(tx, name, input)),
    publishAll: (tx, inputs, options) => {
      // What is no list is for the bus to refuse.
      const given: readonly unknown[] = Array.isArray(inputs) ? inputs : []
      const events = given.map((input) => infoOf(catalogue, property(input, 'type')))
      return tracing.publishing({ events }, () => bus.publishAll(tx, inputs, options))
    },
  }
}

/** The current trace under the headers that the application has for all its events. */
export function traceHeaders(
  tracing: Tracing,
  ambientHeaders: (() => EventHeaders) | undefined,
): () => EventHeaders {
  return () => ({ ...tracing.headers(), ...ambientHeaders?.() })
}

function infoOf(catalogue: Catalogue, name: unknown): PublishingInfo['events'][number] {
  if (typeof name !== 'string') return { name: shown(name), stream: null }
  return { name, stream: catalogue.find(name)?.stream ?? null }
}
