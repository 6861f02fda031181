/** What can be told of. `report` is the regular report. */
export const ALERT_RULES = [
  'deadLetter',
  'unresolved',
  'stuckPending',
  'unpublished',
  'oldestPending',
  'dead',
  'meanRetries',
  'eventRate',
  'workerMissing',
  'streamGap',
  'report',
] as const

/** A rule by name. */
export type AlertRule = (typeof ALERT_RULES)[number]

/** The rules whose condition begins, holds and ends; the others tell of something that happened. */
export type ConditionRule = Exclude<AlertRule, 'deadLetter' | 'report'>

/** `alarm`: a condition holds. `recovered`: it is over. `notice`: something happened. `report`: how things stand. */
export type AlertKind = 'alarm' | 'recovered' | 'notice' | 'report'

/** How bad it is, in PagerDuty's words. */
export type AlertSeverity = 'critical' | 'error' | 'warning' | 'info'

/** One line of an alert: what it is, and how it is. */
export interface AlertFact {
  readonly label: string
  readonly value: string
}

/** Something a person should know. Never holds a payload; error texts have what is sensitive masked. */
export interface Alert {
  /** The same when it is sent again after a failure. */
  readonly id: string
  readonly kind: AlertKind
  readonly rule: AlertRule
  /** What it is about: an alarm and its recovery share it, and so does every repetition. */
  readonly key: string
  readonly severity: AlertSeverity
  /** The system it comes from: the option `source`. */
  readonly source: string
  /** One or two words, in capitals: DLQ ALERT. */
  readonly heading: string
  /** One sentence. */
  readonly title: string
  readonly facts: readonly AlertFact[]
  /** What to do, or null. */
  readonly advice: string | null
  /** By the database's clock. */
  readonly at: Date
  /** Since when the condition holds or held; null for what has no duration. */
  readonly since: Date | null
  /** The facts for programs, in any language the same. */
  readonly data: Readonly<Record<string, unknown>>
}

/** Where alerts go. Write your own by this one method; what it throws is retried, and in the end told to the log. */
export interface AlertSink {
  /** How failures name it. */
  readonly name?: string
  /**
   * True for a place that the regular reports go to without being asked for.
   * @default false
   */
  readonly takesReports?: boolean
  /** The signal aborts when its time is over: the alert then counts as not sent. */
  send(alert: Alert, signal: AbortSignal): Promise<void>
}

/** A sink for some rules only. */
export interface AlertRoute {
  readonly sink: AlertSink
  readonly rules: readonly AlertRule[]
}
