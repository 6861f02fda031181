import type { TransactionPool } from '../../publish/in-transaction.ts'
import type { OutboxStore } from '../../store/store.ts'
import type { Transaction } from '../../store/transaction.ts'

/** Which database the demo uses. */
export interface DemoTarget {
  /** Null for an embedded server of the demo's own. */
  readonly url: string | null
  /** A schema that does not exist yet; null lets the demo choose one. */
  readonly schema: string | null
}

/** A database with Commitpost's tables in it, ready for the demo. */
export interface DemoDatabase extends AsyncDisposable {
  /** True for a server that was started for the demo and goes with it. */
  readonly embedded: boolean
  /** user@host:port/database */
  readonly address: string
  /** A connection string without the password, to be shown. */
  readonly shownUrl: string
  readonly schema: string
  /** The schema's name as it stands in SQL. */
  readonly quotedSchema: string
  /** The shop's own connections, as an application has them. */
  readonly pool: TransactionPool
  readonly store: OutboxStore<Transaction>
}
