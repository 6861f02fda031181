import type { CommitpostErrorCode } from '../../runtime/errors.ts'
import type { Localized } from '../language.ts'

/** Everything the program says. Each language has all of it: a sentence left out does not compile. */
export interface Messages {
  readonly usage: UsageMessages
  readonly help: HelpMessages
  readonly errors: ErrorMessages
  readonly migrate: MigrateMessages
  readonly status: StatusMessages
  readonly deadLetters: DeadLetterMessages
  readonly worker: WorkerMessages
  readonly demo: DemoMessages
}

/** What is wrong with how the program was called. `name` is an option with its dashes or an operand in angles. */
export interface UsageMessages {
  unknownCommand(given: string, near: string | null): string
  incomplete(group: string, candidates: readonly string[]): string
  unknownOption(typed: string, near: string | null): string
  needsValue(name: string, placeholder: string): string
  takesNoValue(name: string): string
  isRequired(name: string, summary: Localized): string
  mustBeWholeNumber(name: string, least: number, given: string): string
  mustBeDuration(name: string, given: string): string
  mustBeRate(name: string, most: number, given: string): string
  mustBeOneOf(name: string, choices: readonly string[], given: string): string
  surplus(text: string): string
  readonly noDatabase: string
  seeHelp(command: string): string
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
  title(code: string): string
  /** What a code of the library means, where its own message is in another language; null where nothing is to be added. */
  remark(code: CommitpostErrorCode): string | null
  unreachable(address: string, reason: string): string
  refused(address: string, reason: string): string
  readonly invalidUrl: string
  readonly driverMissing: string
  schemaMissing(reason: string): string
  database(code: string, reason: string): string
  unexpected(reason: string): string
  configNotFound(path: string): string
  configFailed(path: string, reason: string): string
  configInvalid(path: string, problems: readonly string[]): string
  demoSchemaExists(schema: string): string
}

/** `migrate` and `roles`. */
export interface MigrateMessages {
  upToDate(schema: string, version: number): string
  applied(version: number, name: string): string
  migrated(schema: string, version: number): string
  readonly states: Readonly<Record<'missing' | 'current' | 'behind' | 'ahead', string>>
  versions(schema: string, found: number | null, needed: number): string
  readonly columns: Readonly<Record<'version' | 'name' | 'applied', string>>
  readonly pending: string
  readonly advice: Readonly<Record<'missing' | 'behind' | 'ahead', string>>
}

/** `status`, `pause` and `resume`. */
export interface StatusMessages {
  events(count: string): string
  readonly noSubscriptions: string
  readonly columns: Readonly<
    Record<
      'subscription' | 'state' | 'order' | 'pending' | 'processing' | 'retrying' | 'done' | 'dead' | 'oldest' | 'open',
      string
    >
  >
  readonly states: Readonly<Record<'joining' | 'active' | 'retired', string>>
  readonly paused: string
  readonly orders: Readonly<Record<string, string>>
  deadLettersWait(count: string): string
  wasPaused(subscription: string, operator: string): string
  wasResumed(subscription: string, operator: string): string
}

/** `dlq`. */
export interface DeadLetterMessages {
  readonly none: string
  readonly columns: Readonly<
    Record<'id' | 'failedAt' | 'subscription' | 'event' | 'aggregate' | 'attempts' | 'error' | 'state', string>
  >
  readonly open: string
  resolvedBy(operator: string): string
  shown(count: string, total: string): string
  nextPage(before: string): string
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
      | 'resolved'
      | 'note'
      | 'headers'
      | 'payload'
      | 'history',
      string
    >
  >
  title(id: string): string
  resolvedAt(operator: string, at: string): string
  readonly historyColumns: Readonly<Record<'attempt' | 'at' | 'worker' | 'took' | 'error', string>>
  retried(id: string, subscription: string, operator: string): string
  resolved(id: string, operator: string): string
  whatNext(id: string): string
}

/** `worker`. */
export interface WorkerMessages {
  started(subscriptions: readonly string[], config: string): string
  stopping(signal: string): string
  readonly stopped: string
  readonly outboxMissing: string
  readonly subscriptionsMissing: string
  notAnObject(kind: string): string
  /** For an object as config when a database was named on the command line. */
  optionsIgnored(options: readonly string[]): string
}

/** `demo`. */
export interface DemoMessages {
  starting(embedded: boolean): string
  intro(facts: DemoFacts): readonly string[]
  /** One second of the run. */
  progress(counts: DemoProgress): string
  readonly draining: string
  readonly results: string
  readonly columns: Readonly<
    Record<'subscription' | 'published' | 'delivered' | 'pending' | 'dead' | 'holds', string>
  >
  readonly all: string
  equation(subscriptions: number): string
  rolledBack(transactions: string, deliveries: string): string
  ledger(entries: string, orders: string, violations: string): string
  latency(p50: string, p99: string): string
  deadLetters(count: string): string
  readonly verdict: Readonly<Record<'good' | 'bad', string>>
  kept(schema: string, dropLine: string): string
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
