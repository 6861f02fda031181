import { NotFoundError } from '../runtime/errors.ts'
import { NO_SUBSCRIPTION } from '../store/dead-letter-store.ts'
import type { Database } from './services.ts'

const MOST_NAMED = 20

/**
 * Refuses the name of a subscription that there never was, where nothing was found of it: to whoever mistyped one, "there
 * are none" would read as if all were well. A retired one is known, and so is one of which nothing is left but dead letters.
 */
export async function refuseStranger(
  subscription: string | undefined,
  { subscriptions, deadLetters }: Pick<Database, 'subscriptions' | 'deadLetters'>,
): Promise<void> {
  if (subscription === undefined || subscription === NO_SUBSCRIPTION) return
  const names = (await subscriptions.knownSubscriptions()).map(({ name }) => name)
  if (names.includes(subscription) || (await deadLetters.count({ subscription, resolved: null })) > 0) return
  const known = names.length > MOST_NAMED ? [...names.slice(0, MOST_NAMED), '…'] : names
  const message =
    `There is no subscription "${subscription}". It may be mistyped, or not in this database and schema.` +
    (known.length === 0 ? '' : ` There are: ${known.join(', ')}.`)
  throw new NotFoundError('subscription', subscription, { message, known })
}
