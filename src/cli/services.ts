import type { DeadLetters } from '../dead-letter/dead-letters.ts'
import type { Redrive } from '../dead-letter/redrive.ts'
import type { Catalogue } from '../event/catalogue.ts'
import type { Masking } from '../event/masking.ts'
import type { Proof } from '../inspect/proof.ts'
import type { Exports } from '../retain/exports.ts'
import type { Retention } from '../retain/retention.ts'
import type { OperatorAct } from '../runtime/operator-act.ts'
import type { AlertStore } from '../store/alert-store.ts'
import type { GaugeStore } from '../store/gauge-store.ts'
import type { MovedAside } from '../store/redrive-store.ts'
import type { OutboxStore } from '../store/store.ts'
import type { DemoDatabase, DemoTarget } from './demo/demo-database.ts'

/** Which tables a command works on. */
export interface DatabaseTarget {
  readonly url: string
  /** As it is: quoting is the store's business. */
  readonly schema: string
}

/** One step of the schema. */
export interface MigrationStep {
  readonly version: number
  readonly name: string
}

/** What a migration came to. */
export interface MigrationReport {
  readonly schemaVersion: number
  /** The steps this call applied; empty where there was nothing to do. */
  readonly applied: readonly MigrationStep[]
}

/** How the tables are divided by time. */
export interface PartitionedTables {
  /** True where they were plain before. */
  readonly converted: boolean
  readonly everyDays: number
  /** What is older is in the rest. */
  readonly restUntil: Date
  /** Up to here there are partitions. */
  readonly madeUntil: Date
}

/** How the schema in the database compares with this version of the program. */
export interface MigrationComparison {
  readonly schemaVersion: number | null
  readonly codeVersion: number
  readonly applied: readonly (MigrationStep & { readonly appliedAt: Date })[]
  readonly pending: readonly MigrationStep[]
  readonly state: 'missing' | 'current' | 'behind' | 'ahead'
}

/** What a config says about events. */
export interface KnownCatalogue {
  readonly catalogue: Catalogue
  readonly masking: Masking
}

/** What commands read of subscriptions and do to them. */
export type SubscriptionOperations = Pick<
  OutboxStore<never>,
  | 'subscriptionStatuses'
  | 'knownSubscriptions'
  | 'countEvents'
  | 'setPaused'
  | 'retireSubscription'
  | 'notifyWorkers'
>

/** An open database, as commands see it. */
export interface Database extends AsyncDisposable {
  readonly deadLetters: DeadLetters
  /** The same with a catalogue, which checks payloads and says what of them is shown; without one where there is none. */
  deadLettersBy(known: KnownCatalogue | undefined): DeadLetters
  /** Cold exports. Without a catalogue payloads are masked whole. */
  exportsBy(known: KnownCatalogue | undefined): Exports
  readonly redrive: Redrive
  /** Of no policies: to look at what they did. */
  readonly retention: Retention
  readonly subscriptions: SubscriptionOperations
  /** Frees a blocked key of an ordered subscription: what waits on it becomes dead letters. */
  moveAside(subscription: string, orderingKey: string, act: OperatorAct): Promise<MovedAside>
  readonly figures: Pick<AlertStore, 'readFigures' | 'readOpenLetters'>
  readonly gauges: GaugeStore
  readonly proof: Proof
  /** The same with a catalogue: errors may quote what it does not hide. */
  proofBy(known: KnownCatalogue | undefined): Proof
  migrateUp(): Promise<MigrationReport>
  /** Divides the tables by time, or makes the next periods where they are divided already. */
  partitionTables(everyDays: number): Promise<PartitionedTables>
  compareMigrations(): Promise<MigrationComparison>
  /** @throws SchemaMissingError or SchemaVersionError when the tables are missing or of another version. */
  assertReady(): Promise<void>
}

/** What the commands are given to work with, so that only the composition knows which adapters there are. */
export interface Services {
  /**
   * Connects.
   * @throws CliError that names host and port, never the password, when the database cannot be reached.
   */
  openDatabase(target: DatabaseTarget): Promise<Database>
  /** The newest version of the schema that this program knows. */
  latestVersion(): Promise<number>
  migrationSql(options: { readonly schema: string; readonly from: number }): Promise<string>
  partitionSql(options: { readonly schema: string; readonly everyDays: number }): Promise<string>
  rolesSql(options: { readonly schema: string; readonly prefix: string }): Promise<string>
  /** Makes a database ready for the demo: the one that is named, or an embedded one of its own. */
  openDemoDatabase(target: DemoTarget): Promise<DemoDatabase>
  /** The version of this package. */
  packageVersion(): Promise<string>
}
