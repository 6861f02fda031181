import type { DeadLetterStore } from '../store/dead-letter-store.ts'
import type { InspectStore } from '../store/inspect-store.ts'
import type { SubscriptionStore } from '../store/subscription-store.ts'
import type { Shop, ShopOptions } from './demo/shop-port.ts'

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

/** How the schema in the database compares with this version of the program. */
export interface MigrationComparison {
  readonly schemaVersion: number | null
  readonly codeVersion: number
  readonly applied: readonly (MigrationStep & { readonly appliedAt: Date })[]
  readonly pending: readonly MigrationStep[]
  readonly state: 'missing' | 'current' | 'behind' | 'ahead'
}

/** What commands ask of an open database. */
export interface Database extends AsyncDisposable {
  readonly operations: DeadLetterStore & InspectStore & Pick<SubscriptionStore, 'setPaused'>
  migrateUp(): Promise<MigrationReport>
  compareMigrations(): Promise<MigrationComparison>
  /** @throws SchemaVersionError when the tables are missing or of another version. */
  assertReady(): Promise<void>
}

/** What the commands are given to work with, so that only the composition knows which adapters there are. */
export interface Services {
  /**
   * Connects.
   * @throws CliError that names host and port, never the password, when the database cannot be reached.
   */
  openDatabase(target: DatabaseTarget): Promise<Database>
  migrationSql(options: { readonly schema: string; readonly from: number }): Promise<string>
  rolesSql(options: { readonly schema: string; readonly prefix: string }): Promise<string>
  /** Opens the shop of the demo, on an embedded database where the target is null. */
  openShop(options: ShopOptions): Promise<Shop>
  /** The version of this package. */
  packageVersion(): Promise<string>
}
