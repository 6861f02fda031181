import type { CommitpostError } from '../../runtime/errors.ts'
import type { Localized } from '../../runtime/language.ts'
import type { DeadLetter } from '../../store/dead-letter-store.ts'
import type { CareMessages } from './care-messages.ts'
import type { DebeziumMessages } from './debezium.ts'
import type { ExportMessages } from './export-messages.ts'
import type { ProofMessages } from './proof.ts'
import type { RedriveMessages } from './redrive.ts'
import type { RetainMessages } from './retain.ts'

/** Everything the program says. Each language has all of it: a sentence left out does not compile. */
export interface Messages {
  readonly usage: UsageMessages
  readonly help: HelpMessages
  readonly errors: ErrorMessages
  readonly migrate: MigrateMessages
  readonly status: StatusMessages
  readonly deadLetters: DeadLetterMessages
  readonly care: CareMessages
  readonly redrive: RedriveMessages
  readonly retain: RetainMessages
  readonly debezium: DebeziumMessages
  readonly proof: ProofMessages
  readonly exports: ExportMessages
  readonly worker: WorkerMessages
  readonly monitor: MonitorMessages
  readonly metrics: MetricsMessages
  readonly demo: DemoMessages
}

/** What is wrong with how the program was called. `name` is an option with its dashes or an operand in angles. */
export interface UsageMessages {
  readonly unknownCommand: (given: string, near: string | null) => string
  readonly incomplete: (group: string, candidates: readonly string[]) => string
  readonly unknownOption: (typed: string, near: string | null) => string
  readonly needsValue: (name: string, placeholder: string) => string
  readonly takesNoValue: (name: string) => string
  readonly isRequired: (name: string, summary: Localized) => string
  readonly mustBeShorter: (name: string, most: number, length: number) => string
  readonly mustBePerson: (name: string, policyPrefix: string) => string
  readonly mustBeWholeNumber: (name: string, least: number, most: number, given: string) => string
  readonly mustBeRowNumber: (name: string, given: string) => string
  readonly mustBeDuration: (name: string, given: string) => string
  readonly mustBeAtMost: (name: string, most: string, given: string) => string
  readonly mustBeTime: (name: string, given: string) => string
  readonly mustBeOfYears: (name: string, first: number, last: number, given: string) => string
  readonly mustBeLater: (name: string, than: string) => string
  readonly mustBeEventId: (name: string, given: string) => string
  readonly mustBeDays: (name: string, least: number, most: number, given: string) => string
  readonly mustBeRate: (name: string, most: number, given: string) => string
  readonly mustBeShortName: (name: string, mostBytes: number) => string
  readonly mustNotContain: (name: string, text: string) => string
  readonly mustBeOneOf: (name: string, choices: readonly string[], given: string) => string
  readonly surplus: (text: string) => string
  readonly noDatabase: string
  readonly seeHelp: (command: string) => string
}

/** The words of the help itself; commands and options bring their own. */
export interface HelpMessages {
  readonly usage: string
  readonly about: string
  readonly command: string
  readonly commands: string
  readonly options: string
  readonly commonOptions: string
  readonly exitCodes: string
}

/** Failures. `reason` is what the system or the database said, in its own words. */
export interface ErrorMessages {
  readonly title: (code: string) => string
  /** What an error of the library says. Its own message is English. */
  readonly library: (error: CommitpostError) => string
  readonly unreachable: (address: string, reason: string) => string
  readonly refused: (address: string, reason: string) => string
  readonly invalidUrl: string
  readonly driverMissing: string
  readonly database: (code: string, reason: string) => string
  readonly rightMissing: (code: string, reason: string) => string
  readonly unexpected: (reason: string) => string
  readonly configNotFound: (path: string) => string
  /** Without --config, files of these names are looked for. */
  readonly noConfig: (directory: string, names: readonly string[]) => string
  readonly configFailed: (path: string, reason: string) => string
  /** For a config in TypeScript that this Node cannot load. */
  readonly configTypeScript: (path: string, node: string) => string
  readonly configInvalid: (path: string, problems: readonly string[]) => string
  readonly demoSchemaExists: (schema: string) => string
}

/** `migrate` and `roles`. */
export interface MigrateMessages {
  readonly upToDate: (schema: string, version: number) => string
  readonly applied: (version: number, name: string) => string
  readonly migrated: (schema: string, version: number) => string
  readonly states: Readonly<Record<'missing' | 'current' | 'behind' | 'ahead', string>>
  readonly versions: (schema: string, found: number | null, needed: number) => string
  readonly columns: Readonly<Record<'version' | 'name' | 'applied', string>>
  readonly pending: string
  readonly partitioned: (schema: string, restUntil: string) => string
  readonly madeAhead: (everyDays: number, madeUntil: string) => string
  readonly advice: Readonly<Record<'missing' | 'behind' | 'ahead', string>>
}

/** `status`, `pause`, `resume` and `retire`. */
export interface StatusMessages {
  readonly events: (count: string) => string
  readonly noSubscriptions: string
  readonly columns: Readonly<
    Record<
      | 'subscription'
      | 'state'
      | 'order'
      | 'pending'
      | 'processing'
      | 'retrying'
      | 'done'
      | 'dead'
      | 'oldest'
      | 'open',
      string
    >
  >
  readonly states: Readonly<Record<'joining' | 'active' | 'retired', string>>
  readonly paused: string
  readonly orders: Readonly<Record<string, string>>
  readonly deadLettersWait: (count: string) => string
  readonly wasPaused: (subscription: string, operator: string) => string
  readonly wasResumed: (subscription: string, operator: string) => string
  readonly wasRetired: (subscription: string, operator: string, discarded: string) => string
  readonly lettersStay: (count: string) => string
  readonly lockedStay: (count: string) => string
  /** `who` is a process or a prepared transaction, `age` how long it has been open, where that is known. */
  readonly joiningWaits: (subscription: string, who: TransactionHolder, age: string | null) => string
}

/** Who has a transaction open: a server process, or nobody any more (a prepared transaction). */
export interface TransactionHolder {
  readonly pid: number | null
  readonly name: string | null
}

/** `dlq`. */
export interface DeadLetterMessages {
  readonly none: string
  readonly columns: Readonly<
    Record<
      'id' | 'failedAt' | 'subscription' | 'event' | 'aggregate' | 'attempts' | 'error' | 'state',
      string
    >
  >
  readonly open: string
  /** How a dead letter was closed, and by whom. */
  readonly closedBy: (resolution: DeadLetter['resolution'], operator: string) => string
  readonly shown: (count: string, total: string) => string
  readonly nextPage: (before: string) => string
  readonly fields: Readonly<
    Record<
      | 'subscription'
      | 'event'
      | 'stream'
      | 'aggregate'
      | 'orderingKey'
      | 'occurredAt'
      | 'failedAt'
      | 'attempts'
      | 'error'
      | 'state'
      | 'redrive'
      | 'note'
      | 'headers'
      | 'payload'
      | 'history',
      string
    >
  >
  /** When its policy delivers it again, where that is never. */
  readonly redriveNever: string
  readonly title: (id: string) => string
  readonly historyColumns: Readonly<Record<'attempt' | 'at' | 'worker' | 'took' | 'error', string>>
  readonly retried: (id: string, subscription: string, operator: string) => string
  /** Told where an event is on its way again: it may have to wait for many things. */
  readonly seeWhy: (eventId: string) => string
  readonly resolved: (id: string, operator: string) => string
  readonly whatNext: (id: string) => string
  /** In place of the above, where a retry would be refused. */
  readonly cannotRetry: Readonly<Record<'unmatched' | 'retired', (id: string) => string>>
}

/** `worker`. */
export interface WorkerMessages {
  readonly started: (subscriptions: readonly string[], config: string) => string
  readonly stopping: (signal: string) => string
  readonly stopped: string
  readonly outboxMissing: string
  readonly subscriptionsMissing: string
  readonly notAnObject: (kind: string) => string
  /** For an object as config when a database was named on the command line. */
  readonly optionsIgnored: (options: readonly string[]) => string
}

/** `monitor`. */
export interface MonitorMessages {
  readonly started: (config: string) => string
  readonly stopped: string
  readonly allIsWell: string
  readonly amiss: (count: number) => string
  /** For a look that went through a config: what somebody was told, and what nobody could be told. */
  readonly told: (told: number, untold: number) => string
  readonly sinkFailed: (sink: string, error: string) => string
}

/** `metrics`. */
export interface MetricsMessages {
  readonly serving: (url: string) => string
  readonly stopped: string
  readonly prefix: (name: string, given: string) => string
  readonly cannotListen: (host: string, port: number, reason: string) => string
}

/** `demo`. */
export interface DemoMessages {
  readonly starting: (embedded: boolean) => string
  readonly intro: (facts: DemoFacts) => readonly string[]
  /** One second of the run. */
  readonly progress: (counts: DemoProgress) => string
  readonly draining: string
  readonly results: string
  readonly columns: Readonly<
    Record<'subscription' | 'published' | 'delivered' | 'pending' | 'dead' | 'holds', string>
  >
  readonly all: string
  readonly equation: (subscriptions: number) => string
  readonly rolledBack: (transactions: string, deliveries: string) => string
  readonly ledger: (entries: string, orders: string, violations: string) => string
  readonly latency: (p50: string, p99: string) => string
  readonly deadLetters: (count: string) => string
  readonly verdict: Readonly<Record<'good' | 'bad', string>>
  readonly kept: (schema: string, dropLine: string) => string
}

/** What the introduction of the demo tells. */
export interface DemoFacts {
  readonly embedded: boolean
  readonly address: string
  readonly schema: string
  readonly rate: string
  readonly seconds: string | null
  readonly psql: string
  readonly status: string
  readonly deadLetters: string
}

/** The counts of a second of the demo, as text. */
export interface DemoProgress {
  readonly published: string
  readonly delivered: string
  readonly retrying: string
  readonly dead: string
  readonly p50: string
  readonly p99: string
}
