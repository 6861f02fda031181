import type { Catalogue } from '../event/catalogue.ts'
import type { OutboxEvent } from '../event/event.ts'
import type { SubscriptionDefinition } from '../store/subscription-store.ts'

/** What is known when an event arrives that this code cannot handle. */
export interface NoHandlerFacts {
  readonly definition: Pick<SubscriptionDefinition, 'streams' | 'eventTypes'>
  readonly catalogue: Pick<Catalogue, 'findStored'>
  readonly now: Date
}

const RETRY_AFTER_MS = 5_000
const LONGEST_DEPLOY_MS = 600_000

/**
 * After how long another worker should try an event that this one cannot handle, or null if none can: then it is dead.
 *
 * In a rolling deploy the new code has told the database to deliver types, or written versions, that the old code does
 * not know. What a subscription takes only widens, so an event outside what this code declared is one that other code
 * declared. It waits for that code, up to ten minutes from when it was published.
 */
export function noHandlerDelayMs(event: OutboxEvent, facts: NoHandlerFacts): number | null {
  const ageMs = facts.now.getTime() - event.createdAt.getTime()
  if (ageMs > LONGEST_DEPLOY_MS) return null
  return isForOtherCode(event, facts) ? RETRY_AFTER_MS : null
}

function isForOtherCode(event: OutboxEvent, { definition, catalogue }: NoHandlerFacts): boolean {
  const known = catalogue.findStored(event.type)
  if (known !== undefined && event.schemaVersion > known.version) return true
  return definition.eventTypes !== null && !definition.eventTypes.includes(event.type)
}
