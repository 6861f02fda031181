import type { JsonValue } from '../event/event.ts'

/** How one subscription stands, as far as somebody may have to be woken for it. Counts end at the request's `most`. */
export interface SubscriptionFigures {
  readonly name: string
  /** Who paused it, or null. */
  readonly pausedBy: string | null
  readonly pending: number
  readonly processing: number
  /** PENDING for longer than the request's `stuckAfterMs`. */
  readonly stuck: number
  /** Seconds since the oldest PENDING delivery was made or re-driven, or null when nothing is pending. */
  readonly oldestPendingSeconds: number | null
  /** Dead letters of it that wait for a person. */
  readonly dead: number
  /** How often deliveries of late were tried again, on average: attempts - 1. Null when too few were tried at all. */
  readonly meanRetries: number | null
  /** Workers that serve it and whose heartbeat has not lapsed. */
  readonly workers: number
  /** What became of its log: null of a subscription that reads none. */
  readonly log: LogFigures | null
}

/** How the log of a subscription stands. */
export interface LogFigures {
  /** Seconds since its reader last gave a sign of life. */
  readonly silentSeconds: number
  /** Why it was last found to have lost something, or null. */
  readonly gap: string | null
  /** Seconds since then; 0 while the table still serves in its place. */
  readonly gapSeconds: number | null
}

/** A worker that is gone without having left. */
export interface VanishedWorker {
  readonly workerId: string
  readonly host: string
  readonly pid: number
  readonly lastSeenSeconds: number
  readonly subscriptions: readonly string[]
}

/** What the monitor looks at. */
export interface Figures {
  readonly subscriptions: readonly SubscriptionFigures[]
  readonly vanished: readonly VanishedWorker[]
  /** Where the numbers of events have come to. */
  readonly position: number
}

/** How far to count, and from when on something is late. */
export interface FiguresRequest {
  /** Counts end here, so that they cost the same however many rows there are. */
  readonly most: number
  readonly stuckAfterMs: number
  /** A mean of fewer deliveries says nothing. */
  readonly leastForMean: number
  readonly workerMissingMs: number
}

/** Dead letters that wait for a person, by event type. */
export interface OpenLetters {
  /** Ends at the request's `most`. */
  readonly count: number
  readonly byType: readonly { readonly eventType: string; readonly count: number }[]
  readonly oldest: {
    readonly id: string
    readonly eventType: string
    readonly subscription: string
    readonly failedAt: Date
  } | null
}

/** A dead letter nobody was told of. The payload is for finding what to hide, and is never shown. */
export interface UntoldLetter {
  readonly id: string
  readonly subscription: string
  readonly eventId: string
  readonly stream: string
  readonly eventType: string
  readonly aggregateType: string
  readonly aggregateId: string
  readonly errorCode: string
  readonly errorMessage: string
  readonly retryCount: number
  readonly failedAt: Date
  /** Why it cannot be delivered again: nobody took its event, or its subscription is retired. Null where it can. */
  readonly undeliverable: 'unmatched' | 'retired' | null
  readonly payload: JsonValue
  readonly headers: Readonly<Record<string, string>>
}

/** The dead letters nobody was told of: each, or, where there are more than that, what they have in common. */
export interface UntoldLetters {
  readonly ids: readonly string[]
  /** Empty where there are more than was asked for. */
  readonly letters: readonly UntoldLetter[]
  /** Most first; empty where the letters themselves are given. */
  readonly groups: readonly {
    readonly subscription: string
    readonly eventType: string
    readonly errorCode: string
    readonly count: number
  }[]
}

/** What is kept of a condition from one look to the next. */
export interface AlarmState {
  readonly key: string
  readonly rule: string
  /** Since when it holds; null once it does not. */
  readonly since: Date | null
  /** Whether anybody was told that it holds. */
  readonly told: boolean
  /** When somebody was last told that it holds. */
  readonly toldAt: Date | null
}

/** Asks for the turn to look and tell. */
export interface TurnRequest {
  readonly holder: string
  readonly leaseMs: number
  /** Whether to look at everything, or only at what is new among dead letters. */
  readonly whole: boolean
  /** Refused when the last look of this kind was less than this ago. */
  readonly everyMs: number
  /** Whoever looks when the last look at everything was this long ago or longer looks at everything. */
  readonly wholeEveryMs: number
}

/** The turn: only its holder tells, and only while it lasts. */
export interface MonitorTurn {
  readonly holder: string
  readonly epoch: string
  /** Whether this look is at everything. */
  readonly whole: boolean
  /** The database's time. */
  readonly now: Date
  readonly reportAt: Date
  /** The last measurement of where events had come to, and when. */
  readonly rate: { readonly position: number; readonly at: Date } | null
}

/** What a look came to: written at its end, and only while the turn lasts. */
export interface RoundRecord {
  readonly turn: MonitorTurn
  readonly alarms: readonly AlarmState[]
  /** Conditions to forget. */
  readonly forgotten: readonly string[]
  readonly toldLetters: readonly string[]
  /** Vanished workers that somebody was told of: they are not listed again. */
  readonly toldWorkers: readonly string[]
  /** True when a report was made. */
  readonly reported: boolean
  /** A new measurement, or null to keep the last one. */
  readonly position: number | null
}

/** What the monitor asks of the database. */
export interface AlertStore {
  /** Null when somebody else has the turn, or has just looked. */
  takeMonitorTurn(request: TurnRequest): Promise<MonitorTurn | null>
  /** Keeps the turn for another while. False when it has lapsed. */
  extendMonitorTurn(turn: MonitorTurn, leaseMs: number): Promise<boolean>
  readFigures(request: FiguresRequest): Promise<Figures>
  readOpenLetters(most: number): Promise<OpenLetters>
  readUntoldLetters(mostApart: number): Promise<UntoldLetters>
  readAlarms(): Promise<readonly AlarmState[]>
  /** Writes it and gives the turn back. False, and nothing is written, when the turn had lapsed and was another's. */
  recordRound(record: RoundRecord): Promise<boolean>
}

/** A store with connections of its own, so that handlers which use up the application's pool cannot silence alerts. */
export interface MonitorStore extends AlertStore {
  close(): Promise<void>
}
