const READS = 'It only reads, and nothing is done by what it says.'
const OPENS = 'It sends nothing.'

/** The operations that no scene breaks, and why. */
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
}
