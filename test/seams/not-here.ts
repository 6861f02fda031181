const READS = 'It only reads, and nothing is done by what it says.'
const OPENS = 'It sends nothing.'

/**
 * The operations that no scene breaks, and why. Of a store that the guard looks at, none may be missing here or in a scene; what
 * else is left out is named below them.
 */
export const BESIDE: Readonly<Record<string, string>> = {
  constructor: OPENS,
  close: 'It sends nothing; what ends with it is in the scene that stops.',
  openExports: OPENS,
  listen: 'It only wakes: whoever is deaf polls.',
  openTransaction: 'It only reads, for a message, and only where joining takes its time.',
  subscriptions: READS,
  countDeadLetters: READS,
  groupDeadLetters: READS,
  blockedKeys: READS,
  subscriptionStatuses: READS,
  knownSubscriptions: READS,
  countEvents: READS,
  readGauges: READS,
  verify: READS,
  doctorFacts: READS,
  traceEvent: READS,
  verifyChains: READS,
  recordReveal:
    'It is no step on the way of an event. Each time that somebody asks to be shown is an act of its own.',
  setPaused: 'It is no step on the way of an event.',
  retireSubscription: 'It is no step on the way of an event, but its end: no scene has one yet.',
  assertInTransaction: 'The client of a scene says whether a transaction is open: nothing is sent to ask.',
  commitWith: 'It sends nothing. What is sent by the way it gives is broken where something is published.',
  openWorker: OPENS,
  openMonitor: OPENS,
  allowPolicy:
    'It is no step on the way of an event: the owner of the tables allows it once, before anything runs.',
  previewRetention: READS,
  retentionRuns: READS,
  outbox_retain:
    'Retention by hand, with an entry of its own in the log: its steps are those of a policy, which are broken.',
  outbox_drop_period: 'Only partitioned tables have periods, and scenes are played on plain ones.',
  outbox_purge_archive:
    'It is no step on the way of an event, but comes long after its end: no scene has one yet.',
  PostgresStreamStore: 'A subscription that reads the log leaves no deliveries: its store has no scene.',
  MonitorStore: 'Alerts are no step on the way of an event.',
}
