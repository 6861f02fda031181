import { type DeadLetter, NO_SUBSCRIPTION } from '../store/dead-letter-store.ts'
import type { Database } from './services.ts'

/** Why an open dead letter cannot be delivered again: nobody took its event, or its subscription is retired. Else null. */
export async function undeliverable(
  { subscription }: Pick<DeadLetter, 'subscription'>,
  { subscriptions }: Pick<Database, 'subscriptions'>,
): Promise<'unmatched' | 'retired' | null> {
  if (subscription === NO_SUBSCRIPTION) return 'unmatched'
  const known = await subscriptions.knownSubscriptions()
  return known.some(({ name, retired }) => name === subscription && retired) ? 'retired' : null
}
