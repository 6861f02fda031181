import type { DispatchedDelivery } from '../dispatch/attempt.ts'
import type { ContextServices } from '../dispatch/handler.ts'
import type { Catalogue } from '../event/catalogue.ts'
import type { EventBus } from '../publish/event-bus.ts'
import { CommitpostError } from '../runtime/errors.ts'
import { createContextServices } from '../worker/context-services.ts'
import type { KafkaConsumerOptions } from './consumer-options.ts'
import { sequenceId } from './once-by.ts'

/** What `ctx.once`, `ctx.publish` and `ctx.complete` do where events come from Kafka. */
export function consumerServices<C extends Catalogue, Tx>(
  options: Pick<KafkaConsumerOptions<C, Tx>, 'store' | 'bus' | 'onceBy'>,
): ContextServices<DispatchedDelivery> {
  const { store, bus, onceBy = 'eventId' } = options
  // Typed by the catalogue up to here; inside, names and transactions are what they are at run time.
  const services = createContextServices({
    store: store as unknown as Parameters<typeof createContextServices>[0]['store'],
    bus: bus as unknown as EventBus<Catalogue, unknown>,
    onPublished: () => {},
  })
  return {
    once: async (event, subscription, tx, work) => {
      if (store === undefined) throw unavailable('once', 'store: postgresStore({ pool })')
      const known = onceBy === 'sequence' ? { ...event, eventId: sequenceId(event) } : event
      return services.once(known, subscription, tx, work)
    },
    publish: async (event, tx, name, input) => {
      if (bus === undefined) throw unavailable('publish', 'bus: outbox')
      return services.publish(event, tx, name, input)
    },
    complete: async () => {
      throw new CommitpostError(
        'INVALID_STATE',
        'ctx.complete marks a delivery of the outbox, and this event came from Kafka. Use ctx.once(tx, work): the effect ' +
          'and the record that it was done commit together there too.',
      )
    },
  }
}

function unavailable(what: string, option: string): CommitpostError {
  return new CommitpostError(
    'INVALID_STATE',
    `ctx.${what} is not available here: the Kafka consumer was made without it. Give it the option ${option}.`,
  )
}
