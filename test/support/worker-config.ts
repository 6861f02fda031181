/** What the program `fault-worker` is told, as JSON in its first argument. */
export interface WorkerConfig {
  readonly workerId: string
  /** Where the worker works: through a proxy or a pooler, perhaps. */
  readonly url: string
  /** Where its handlers write their history: never through anything that breaks. */
  readonly witnessUrl: string
  readonly schema: string
  readonly subscription: SubscriptionConfig
  readonly leaseMs: number
  /** @default 30_000 */
  readonly drainMs?: number
  /** @default false */
  readonly listen?: boolean
  /** Options of the worker's connections. */
  readonly connections?: { readonly query_timeout?: number; readonly connectionTimeoutMillis?: number }
  /** Which code runs: `old` knows one event less. @default 'new' */
  readonly code?: 'old' | 'new'
  readonly handlers?: HandlerConfig
}

/** The part of a subscription's options that is plain data. */
export interface SubscriptionConfig {
  readonly name: string
  readonly engine?: 'queue' | 'stream'
  readonly order?: 'none' | 'aggregate' | 'total'
  readonly oneAtATime?: boolean
  readonly onDead?: 'block' | 'continue'
  readonly maxAttempts?: number
  readonly concurrency?: number
  readonly batchSize?: number
  readonly pollMs?: number
  readonly pollMinMs?: number
}

/** What the handlers do beside writing history. */
export interface HandlerConfig {
  /** Each waits for a line on the program's input first. */
  readonly hold?: boolean
  /** Each asks the outbox's database something first, as handlers do, and fails if it cannot. */
  readonly needsDatabase?: boolean
  /** Each takes so long. */
  readonly takesMs?: number
  /** The first blocks the event loop, without a pause, until this file exists. */
  readonly blocksUntil?: string
  /** Poisoned events kill the process. */
  readonly obeysPoison?: boolean
}

/** What the program prints, one JSON object per line: everything its worker tells, and each handler's beginning. */
export interface WorkerLine {
  readonly kind: string
  readonly eventId?: string
  readonly attempt?: number
  readonly during?: string
  readonly message?: string
  readonly count?: number
  readonly suspects?: number
  readonly dead?: number
  readonly why?: string
  readonly released?: number
  readonly inHand?: number
}
