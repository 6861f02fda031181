import type { LaneDelivery } from '../store/queue-store.ts'
import type { Ended } from './report.ts'

/**
 * How many of the first results may be written in one batch, where a dead event lets its key go on. In a batch what is
 * DONE is written before what is DEAD: if the worker is cut off in between, the later event of a key would be done, and
 * the earlier one would come again.
 */
export function writtenTogether(results: readonly Ended<LaneDelivery>[]): number {
  const deadKeys = new Set<string>()
  for (const [index, { delivery, settlement }] of results.entries()) {
    if (settlement.kind === 'dead') deadKeys.add(delivery.key)
    else if (deadKeys.has(delivery.key)) return index
  }
  return results.length
}
