import { CommitpostError } from './errors.ts'

/**
 * The tables are partitioned, and none of the partitions is for the time in the id of one of these events. Nothing of the
 * statement was written.
 */
export class NoPartitionError extends CommitpostError {
  readonly eventIds: readonly string[]

  constructor(eventIds: readonly string[], options?: ErrorOptions) {
    const which = eventIds.length === 1 ? 'event' : 'at least one of the events'
    super(
      'NO_PARTITION',
      `There is no partition for the id of ${which} ${eventIds.join(', ')}. Nothing was written, and the transaction has ` +
        'failed: roll it back. Where the tables are partitioned, an id must be a UUID of version 7 that was made in our ' +
        'time, as all are that Commitpost makes. If it is one, nobody has made partitions for days: run a worker, or ' +
        '`commitpost migrate partition`.',
      options,
    )
    this.eventIds = eventIds
  }
}
