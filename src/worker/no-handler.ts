import type { Catalogue } from '../event/catalogue.ts'
import type { OutboxEvent } from '../event/event.ts'
import type { Clock } from '../runtime/clock.ts'
import type { SubscriptionDefinition } from '../store/subscription-store.ts'

/** What this code can handle, and the time by which it waits for code that can do more. */
export interface NoHandlerFacts {
  readonly definition: Pick<SubscriptionDefinition, 'streams' | 'eventTypes'>
  readonly catalogue: Pick<Catalogue, 'findStored'>
  readonly clock: Pick<Clock, 'monotonicMs'>
}

const RETRY_AFTER_MS = 5_000
const LONGEST_DEPLOY_MS = 600_000

/**
 * Answers after how long another worker should try an event that this one cannot handle, or null if none can: then it
 * is dead.
 *
 * In a rolling deploy the new code has told the database to deliver types, or written versions, that the old code does
 * not know. What a subscription takes only widens, so an event outside what this code declared is one that other code
 * declared. Such a type waits for that code, ten minutes from when this process first met it: a wall clock that is
 * wrong must not kill it.
 */
export function noHandlerDelay(facts: NoHandlerFacts): (event: OutboxEvent) => number | null {
  const firstMet = new Map<string, number>()
  return (event) => {
    if (!isForOtherCode(event, facts)) return null
    const nowMs = facts.clock.monotonicMs()
    const type = `${event.type} ${event.schemaVersion}`
    const sinceMs = firstMet.get(type) ?? nowMs
    firstMet.set(type, sinceMs)
    return nowMs - sinceMs > LONGEST_DEPLOY_MS ? null : RETRY_AFTER_MS
  }
}

function isForOtherCode(event: OutboxEvent, { definition, catalogue }: NoHandlerFacts): boolean {
  const known = catalogue.findStored(event.type)
  if (known !== undefined && event.schemaVersion > known.version) return true
  return definition.eventTypes !== null && !definition.eventTypes.includes(event.type)
}
