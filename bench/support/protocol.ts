/** What a contender's program is asked to do: write the backlog, work it off, or say whether all of it is done. */
export type Step = 'load' | 'drain' | 'verify'

/** How one drain is set up. Handed to a program as JSON on its command line. */
export interface DrainTask {
  readonly url: string
  readonly step: Step
  /** Events in the backlog. */
  readonly events: number
  /** Distinct ordering keys among them. */
  readonly keys: number
  /** Subscriptions that get each event; peers have one. */
  readonly subscriptions: number
  /** How many processes work it off. One alone ends by itself; of several each is told when to stop. */
  readonly processes: number
  /** The contender's own settings. */
  readonly settings: ContenderSettings
}

/** Settings by name; each program reads its own. */
export type ContenderSettings = Readonly<Record<string, number | string | boolean>>

/** What one process did during a drain. */
export interface DrainReport {
  readonly handled: number
  /** From the start until the last handler was called, in seconds. */
  readonly handledSeconds: number
  /** From the start until everything was written down and the worker had stopped, in seconds. */
  readonly seconds: number
  readonly cpuMicros: number
  readonly maxRssBytes: number
}

/** A worker that keeps up with a publisher. */
export interface LiveTask {
  readonly url: string
  readonly role: 'worker' | 'publisher'
  /** Events before the measured ones: nobody is compared with a cold process. */
  readonly warmUp: number
  readonly events: number
  readonly order: 'none' | 'aggregate'
  /** What a client publishes in one transaction, and how many clients there are. */
  readonly batch: number
  readonly clients: number
  /** With so many that are not yet handled, the publisher waits. */
  readonly mostOpen: number
  readonly keys: number
}

/** What the worker of a live run did. */
export interface LiveReport {
  /** How long each tenth of the measured events took, in seconds. */
  readonly tenths: readonly number[]
  readonly cpuMicros: number
  readonly maxRssBytes: number
}

/** Where a listener of pg-transactional-outbox reads, and how. */
export interface ListenerPlace {
  readonly url: string
  readonly schema: string
  readonly table: string
  readonly publication: string
  readonly slot: string
  readonly concurrency: 'mutex' | 'semaphore' | 'full'
  /** Connections that messages are handled with; so many at a time with a semaphore. */
  readonly connections: number
  /** After so many seconds it stops, however many are left. */
  readonly mostSeconds: number
}

/** A listener with a handler that counts, and what stands in its table. */
export interface ListenerTask extends ListenerPlace {
  readonly events: number
}

/** A listener that goes on until it is told to stop: to a topic, or to a clock. */
export interface ForwardTask extends ListenerPlace {
  readonly kafka: { readonly bootstrap: string; readonly topic: string } | null
}

/** How long each message took from the call that sent it to the clock, in microseconds; none where it went to a topic. */
export interface ForwardReport {
  readonly latencies: readonly number[]
}

/** What it did. */
export interface ListenerReport {
  /** Messages until the end of the clock, each counted once. */
  readonly timed: number
  /** From the first of them to the end of the clock. */
  readonly seconds: number
  /** Those that were under way at the end of the clock included. */
  readonly handled: number
  readonly cpuMicros: number
}

/** A relay of Commitpost to the topics that begin so. */
export interface RelayTask {
  readonly url: string
  readonly bootstrap: string
  readonly engine: 'queue' | 'stream'
  readonly prefix: string
}

/** CPU time from when it was told to go until it was told to stop. */
export interface RelayReport {
  readonly cpuMicros: number
}

/** One side of a latency run. */
export interface LatencyTask {
  readonly url: string
  readonly role: 'worker' | 'publisher'
  readonly warmUp: number
  readonly events: number
  readonly perSecond: number
  readonly settings: ContenderSettings
}

/** How long each event took from the call that sent it to its handler, or to the end of that call, in microseconds. */
export interface LatencyReport {
  readonly latencies: readonly number[]
}

/** One way of writing, repeated by so many clients for so long. */
export interface PublishTask {
  readonly url: string
  readonly way: 'plain-business' | 'business' | 'business-and-publish' | 'publish-all' | 'unnest'
  readonly clients: number
  /** Events in a transaction. */
  readonly batch: number
  /** Rows of the table that business transactions change, and keys of the events. */
  readonly accounts: number
  /** Before the measured ones: V8 still compiles what is called, beside the clients and on the same cores. */
  readonly warmUpSeconds: number
  readonly seconds: number
}

/** How often it was done, and the CPU time of the publishing process. */
export interface PublishReport {
  readonly perSecond: number
  readonly microsEach: number
}

/** A worker with nothing to do. */
export interface IdleTask {
  readonly url: string
  readonly order: 'none' | 'aggregate'
  /** From its start until its queries are counted. */
  readonly settleSeconds: number
  readonly seconds: number
}

/** What a worker with nothing to do asks of the database. */
export interface IdleReport {
  readonly queriesPerSecond: number
}

/** What a program says to whoever started it. */
export type FromProgram =
  | { readonly type: 'ready' }
  | { readonly type: 'progress'; readonly value: number }
  | { readonly type: 'report'; readonly report: unknown }

/** What a program is told. */
export type ToProgram =
  | { readonly type: 'go' }
  | { readonly type: 'stop' }
  | { readonly type: 'credit'; readonly value: number }
