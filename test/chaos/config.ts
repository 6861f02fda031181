/** What all processes of a run share. */
interface SharedConfig {
  readonly id: string
  /** Where the database is, for this process: through a proxy of its own. */
  readonly url: string
  readonly schema: string
  /** Where its journal is. */
  readonly journals: string
}

/** What the program `chaos-worker` is told, as JSON in its first argument. */
export interface ChaosWorkerConfig extends SharedConfig {
  readonly leaseMs: number
  /** Which code runs. The new one knows one event more, and does everything in another order and number. */
  readonly code: 'old' | 'new'
  /** By how much its clock is wrong, where the library is handed one. */
  readonly skewMs: number
}

/** What the program `chaos-publisher` is told, as JSON in its first argument. */
export interface ChaosPublisherConfig extends SharedConfig {
  readonly seed: number
  /** How long a statement may take. */
  readonly timeoutMs: number
}

/** What both print, one JSON object per line: how far they are. */
export interface ChaosLine {
  readonly count: number
  /** Of a worker: whether all its subscriptions are. */
  readonly isActive?: boolean
}
