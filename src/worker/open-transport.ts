import type { TransportSession } from '../dispatch/transport.ts'
import type { ResolvedSubscription } from './resolve-subscription.ts'
import type { WorkerEnvironment } from './worker-environment.ts'

/** Opens what leads to a relay's destination; null where there are handlers. */
export function openTransport(
  { clock, random, observer }: WorkerEnvironment,
  { via, definition: { name } }: ResolvedSubscription,
): TransportSession | null {
  if (via === null) return null
  return via.open({
    subscription: name,
    clock,
    random,
    onOutage: (error) => observer({ kind: 'error', during: 'send', error, subscription: name }),
  })
}

/**
 * Whether several events of a key may be handed over at once: a transport keeps the order of what it is handed. Of order
 * 'total' it does not know what stands behind what.
 */
export function mayGoTogether({ via, definition, concurrency }: ResolvedSubscription): boolean {
  return via !== null && definition.orderBy === 'aggregate' && concurrency > 1
}

/** How many events of a log are handed over at once: to a transport a second batch, which is read while one is under way. */
export function mostAtOnce({ via, concurrency }: ResolvedSubscription): number {
  return via === null || concurrency === 1 ? concurrency : concurrency * 2
}
