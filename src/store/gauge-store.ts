/** What one look at the tables may cost. */
export interface GaugeLimits {
  /** Rows of one kind and subscription are counted up to this number: more are said to be this many. */
  readonly countLimit: number
  /** The database ends a statement that takes longer, in milliseconds. */
  readonly timeoutMs: number
}

/** Open deliveries of one subscription and stream. */
export interface BacklogGauge {
  readonly subscription: string
  readonly stream: string
  readonly pending: number
  /** Those of `pending` that failed, were given back or wait behind another at least once. */
  readonly held: number
  readonly processing: number
  /** Since the oldest PENDING one of those counted was created; null when none is pending. */
  readonly oldestPendingSeconds: number | null
}

/** Dead letters that wait for a person, of one stream and event type. */
export interface DeadLetterGauge {
  readonly subscription: string
  readonly stream: string
  readonly eventType: string
  readonly count: number
}

/** A subscription that is not retired. */
export interface SubscriptionGauge {
  readonly subscription: string
  readonly state: 'joining' | 'active'
  readonly paused: boolean
  /** Live workers that serve it. */
  readonly workers: number
}

/** A table, its partitions and indexes included. */
export interface TableGauge {
  readonly table: string
  readonly bytes: number
  /** As the last ANALYZE or VACUUM estimated; null before the first. */
  readonly estimatedRows: number | null
  /** Rows removed since the server's statistics were reset. */
  readonly removedRows: number
}

/** How the tables stand, at a bounded cost: counted up to a limit, or estimated. */
export interface Gauges {
  readonly backlog: readonly BacklogGauge[]
  readonly deadLetters: readonly DeadLetterGauge[]
  readonly subscriptions: readonly SubscriptionGauge[]
  readonly tables: readonly TableGauge[]
  /** Since the oldest event that is still kept was written; null when there is none. */
  readonly oldestEventSeconds: number | null
  /** True where a count ended at the limit: there may be more. */
  readonly capped: boolean
}

/** The read model for metrics. */
export interface GaugeStore {
  /** Reads on a connection of its own, with partial indexes only and within the limits. */
  readGauges(limits: GaugeLimits): Promise<Gauges>
}
