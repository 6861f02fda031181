import type { DeliveryFailure } from '../delivery/delivery.ts'
import type { OutboxEvent } from '../event/event.ts'

/** An event as it comes from the log or, where the log has a gap, from the table. What is asked of it may be read then. */
export interface LoggedEvent {
  readonly eventId: string
  /** The event's position, as text. */
  readonly position: string
  /** Whether it may have been put in the place of another, for one subscription only. */
  readonly mayStandIn: boolean
  /** The transaction that wrote it. */
  readonly xid: number
  readonly stream: string
  readonly type: string
  readonly orderingKey: string
  readonly createdAt: Date
  /** About how much memory it takes. */
  readonly bytes: number
  /** The event as stored: read anew each time it is asked for. */
  readonly event: OutboxEvent
}

/** Since when a stream subscription wants what. */
export interface StreamScope {
  wants(event: LoggedEvent): boolean
}

/** Why the log cannot be trusted to have everything: what is missing is delivered from the table. */
export type LogGap =
  | 'new'
  | 'slot-missing'
  | 'slot-invalidated'
  | 'slot-advanced'
  | 'slot-replaced'
  | 'server-changed'
  | 'publication-changed'
  | 'wal-budget'

/** A worker's claim on the log of one subscription: nobody else reads it until it lapses. */
export interface StreamLease {
  readonly subscriptionId: number
  readonly workerId: string
  /** Grows with every holder. Whatever is written carries it. */
  readonly epoch: string
  /** What the subscription took when the lease began: once it takes more, nothing more is written under it. */
  readonly generation: number
  readonly maxAttempts: number
  readonly scope: StreamScope
  /** No event beyond this position has a delivery that an earlier holder made. */
  readonly parkedTo: string
  /** Where the log was when the lease began. */
  readonly walAt: bigint
  /** How many holders in a row vanished without getting further than where they began. */
  readonly crashes: number
}

/** Another has the log. */
export interface StreamHeld {
  /** How long its lease lasts from now, unless it is extended. */
  readonly heldForMs: number
}

/** How far a stream subscription is: everything before it was handled, or has a delivery. */
export interface StreamProgress {
  /** Where in the log. */
  readonly lsn: bigint
  /** A snapshot that travelled in the log before that place; null where none has since the last time. */
  readonly snapshot: string | null
  /** Whether this is past all that a vanished holder may have had in hand. */
  readonly settled: boolean
}

/** How an event of the log is set aside: as a delivery that the queue works off. */
export interface ParkedEvent {
  readonly position: string
  readonly eventId: string
  readonly orderingKey: string | null
  readonly kind: 'retry' | 'dead' | 'wait'
  /** How long until it is due. */
  readonly delayMs: number
  /** Null where no attempt was made. */
  readonly failure: DeliveryFailure | null
  readonly durationMs: number
}

/** What is to be known before events are handed over: what `streamGate` answers. */
export interface GateAnswer {
  /** False when the lease is another's by now, or the subscription takes more than when it began. */
  readonly held: boolean
  readonly paused: boolean
  /** Whether any key at all is open, of those that were asked about or of others. */
  readonly hasOpen: boolean
  /** Of the keys that were asked about, those of which an earlier event waits, runs or is dead: later ones wait behind it. */
  readonly openKeys: ReadonlySet<string>
  /** Ids of events that have a delivery already, or are not for this subscription. */
  readonly settled: ReadonlySet<string>
}

/** What a heartbeat found. */
export interface StreamBeat {
  readonly held: boolean
  readonly paused: boolean
  /** How much of the log the server keeps for this subscription. */
  readonly retainedBytes: number
  /** False when what makes events appear in the log was changed since it began: some may be missing there. */
  readonly published: boolean
}

/** Who is told what an open log brings. Called synchronously; what is thrown ends the log. */
export interface LogListener {
  /** Returns whether the event is kept: what is not need not stay in memory. */
  event(event: LoggedEvent): boolean
  /** Everything up to here was told. */
  commit(lsn: bigint): void
  /** A snapshot that was taken before this place in the log. */
  mark(snapshot: string, lsn: bigint): void
  /** No more comes: null if it was closed, otherwise why. */
  ended(error: unknown): void
}

/** A log that is being read. */
export interface OpenLog {
  /** Whoever cannot keep up lets the server wait. */
  pause(): void
  resume(): void
  /** Everything up to here was handled and recorded: the server need not keep it. */
  confirm(lsn: bigint): void
  close(): Promise<void>
}

/** One stretch of events from the table, in the order of their positions. */
export interface MissedEvents extends AsyncDisposable {
  /** Whether it ends where the log begins. */
  readonly reachesLog: boolean
  /** The next ones; empty at the end. */
  next(): Promise<readonly LoggedEvent[]>
  /** Records that everything up to this position was handled. False when the lease is another's. */
  reached(position: string): Promise<boolean>
  /** Records that all were. False when the lease is another's. */
  finished(): Promise<boolean>
}

/** The connections to one subscription's log, for as long as one lease lasts. */
export interface LogSession {
  /** Why what is in the log may not be everything; null if it is. */
  gap(): Promise<LogGap | null>
  /** What the table has since the last recorded snapshot, up to now or to where the log begins. */
  missed(): Promise<MissedEvents>
  /**
   * Makes the log begin anew. Resolves once it has begun; `missed()` then ends where the log begins, and once that is
   * finished the log can be read.
   */
  beginLog(): Promise<void>
  /** Reads on from the recorded place. Resolves with why if the log does not have everything: nothing was told then. */
  read(listener: LogListener): Promise<OpenLog | LogGap>
  /** Lets the server forget the log of this subscription: from now on only the table has its events. */
  dropLog(why: LogGap): Promise<void>
  close(): Promise<void>
}

/** What the log stream asks of a database. */
export interface StreamStore {
  /** Throws STREAM_UNAVAILABLE with the remedy where there can be no log stream. */
  assertStreamable(): Promise<void>
  /** Takes the log of a subscription, if nobody holds it and it was not retired. */
  takeStream(
    subscriptionId: number,
    workerId: string,
    leaseMs: number,
  ): Promise<StreamLease | StreamHeld | 'retired'>
  /** Lets the server forget the log of a subscription that was retired. */
  forgetLog(subscriptionId: number): Promise<void>
  /** Extends the lease and lets a snapshot travel in the log. */
  beatStream(lease: StreamLease, leaseMs: number): Promise<StreamBeat>
  /** Asks before events are handed over: which of the keys are open, which of the doubtful events are settled. */
  streamGate(
    lease: StreamLease,
    keys: readonly string[],
    doubtful: readonly LoggedEvent[],
  ): Promise<GateAnswer>
  /** Sets events aside as deliveries. False, with nothing written, when the lease is another's. */
  parkEvents(lease: StreamLease, events: readonly ParkedEvent[]): Promise<boolean>
  /** Records how far it is. False, with nothing written, when the lease is another's or the subscription takes more. */
  recordProgress(lease: StreamLease, progress: StreamProgress): Promise<boolean>
  /** Gives the lease back. */
  releaseStream(lease: StreamLease): Promise<void>
  openLog(lease: StreamLease): LogSession
}
