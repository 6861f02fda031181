/** From where on `doctor` calls something worth a word. */
export interface DoctorLimits {
  /**
   * Dead row versions of a table, where they are also more than a fifth of the live ones.
   * @default 100_000
   */
  readonly deadTuples: number
  /**
   * Bytes of a table that hold nothing, by estimate, where they are also more than half of it.
   * @default 268_435_456
   */
  readonly bloatBytes: number
  /**
   * How long a transaction or a prepared transaction may keep the server from cleaning up.
   * @default 300
   */
  readonly transactionSeconds: number
  /**
   * How many transaction ids a replication slot or a standby may keep back.
   * @default 1_000_000
   */
  readonly slotTransactions: number
  /**
   * How far this machine's clock may be from the database's.
   * @default 1_000
   */
  readonly clockSkewMs: number
  /**
   * How long after it has lapsed a lease may stand: workers take it back within seconds.
   * @default 60
   */
  readonly leaseSeconds: number
}

/** How the tables compare with what this code needs. */
export interface SchemaFacts {
  readonly state: 'missing' | 'current' | 'behind' | 'ahead'
  readonly found: number | null
  readonly needed: number
  /** Steps whose text was another when they were applied. */
  readonly changed: readonly string[]
}

/** Something of the schema that is not there, or does not work. */
export interface BrokenObject {
  readonly kind: 'index' | 'trigger'
  readonly name: string
  readonly problem: 'missing' | 'invalid' | 'disabled'
  /** The table whose trigger is switched off, as SQL takes it: with its schema. Else null. */
  readonly table: string | null
}

/** A right that somebody has and nobody needs. */
export interface SurplusRight {
  /** The role, quoted where SQL needs it; `public` for everybody. */
  readonly role: string
  readonly right: string
  /** As SQL takes it: with its schema, and a function with its arguments. */
  readonly object: string
}

/** How much of a table is waste. */
export interface TableFacts {
  /** As SQL takes it: with its schema. */
  readonly table: string
  readonly liveTuples: number
  readonly deadTuples: number
  readonly bytes: number
  /** By the statistics of its columns; null before the first ANALYZE. */
  readonly wastedBytes: number | null
  readonly lastVacuum: Date | null
  /** False where autovacuum is switched off for the server or for this table. */
  readonly autovacuum: boolean
}

/** How the tables are divided by time. */
export interface PartitionFacts {
  /** `preparing`: somebody began to convert them. */
  readonly state: 'preparing' | 'partitioned'
  readonly everyDays: number
  /** There is a partition for every day before it; while they are being converted, none for it and later is let in. */
  readonly madeUntil: Date
  /** How many days that is from now, rounded down. */
  readonly daysAhead: number
  /** Partitions of the recorded periods that are not there, or not attached. */
  readonly missing: readonly string[]
  /** Partitions that are attached and belong to no recorded period: a DEFAULT one, say. */
  readonly unexpected: readonly string[]
}

/** Who keeps the server from cleaning up. */
export interface XminHolder {
  readonly kind: 'session' | 'prepared' | 'slot' | 'standby'
  /** The name of the application, the prepared transaction, the slot or the standby. */
  readonly name: string | null
  readonly pid: number | null
  /** As the server shows it; null where that is not allowed. */
  readonly query: string | null
  /** How long it has been open; null where that is not known: of slots and standbys it never is. */
  readonly seconds: number | null
  /** How many transaction ids ago. */
  readonly transactions: number
}

/** How one subscription stands. */
export interface SubscriptionFacts {
  readonly subscription: string
  readonly pausedBy: string | null
  readonly pausedAt: Date | null
  readonly hasLiveWorker: boolean
  readonly hasPending: boolean
  /** Leases that lapsed longer ago than allowed. */
  readonly lapsedLeases: number
  /** How long ago the oldest of them did. */
  readonly lapsedSeconds: number | null
  /** True while it is joining. */
  readonly joining: boolean
}

/** A type of event that is in the table. */
export interface StoredType {
  readonly stream: string
  readonly eventType: string
  /** Among the newest that were looked at. */
  readonly count: number
}

/** What a look at the server and the tables comes to. */
export interface DoctorFacts {
  /** Null where the connected role may not read the list of steps. */
  readonly schema: SchemaFacts | null
  readonly settings: Readonly<Record<'fsync' | 'full_page_writes' | 'synchronous_commit', string>>
  /** The database's clock, and the span of this machine's own in which it was read. */
  readonly clock: { readonly database: Date; readonly before: Date; readonly after: Date }
  /** Whether the sessions of other roles are shown: without it, who holds what is known in part. */
  readonly seesAllSessions: boolean
  readonly holders: readonly XminHolder[]
  /** What follows is null where the schema is not current: its tables may be others. */
  readonly tables: TablesFacts | null
}

/** The part of the facts that needs the tables. */
export interface TablesFacts {
  readonly broken: readonly BrokenObject[]
  readonly surplusRights: readonly SurplusRight[]
  /** Tables that the connected role may not read. */
  readonly unreadable: readonly string[]
  readonly sizes: readonly TableFacts[]
  /** Null where they are plain, or may not be read. */
  readonly partitions: PartitionFacts | null
  readonly subscriptions: readonly SubscriptionFacts[]
  readonly types: readonly StoredType[]
}
