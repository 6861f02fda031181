import { AsyncLocalStorage } from 'node:async_hooks'
import { type Ids, systemIds } from '../../src/runtime/ids.ts'

const named = new AsyncLocalStorage<string[]>()

/** Gives new events the ids that a scene knows them by. What comes with an id of the caller's is never kept back until COMMIT. */
export const knownIds: Ids = {
  ...systemIds,
  eventId: () => named.getStore()?.shift() ?? systemIds.eventId(),
}

/** Events that are published within, and have no ids, get these in turn. */
export function withIds<Result>(eventIds: readonly string[], work: () => Result): Result {
  return named.run([...eventIds], work)
}
