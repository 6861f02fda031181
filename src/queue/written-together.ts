import type { LaneDelivery } from '../store/queue-store.ts'
import type { Ended } from './report.ts'

/**
 * How many of the first results may be written in one batch, where a dead event lets its key go on: it is the only one of
 * its key. In a batch what is DONE is written before what is DEAD: if the worker is cut off in between, the later event of a
 * key would be done, and the earlier one would come again. Nor is one DEAD with an earlier one that may turn out to be locked.
 */
export function writtenTogether(results: readonly Ended<LaneDelivery>[]): number {
  const isDeadKey = new Map<string, boolean>()
  for (const [index, { delivery, settlement }] of results.entries()) {
    const isDead = settlement.kind === 'dead'
    const isAfterDead = isDeadKey.get(delivery.key)
    if (isAfterDead !== undefined && (isAfterDead || isDead)) return index
    isDeadKey.set(delivery.key, isDead)
  }
  return results.length
}
