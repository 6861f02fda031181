import type {
  BrokenObject,
  SchemaFacts,
  StoredType,
  SurplusRight,
  XminHolder,
} from '../store/doctor-facts.ts'

/** How bad it is: `ok`, `warning` (look at it today), `problem` (events are late, lost or in danger). */
export type Severity = 'ok' | 'warning' | 'problem'

/** What is looked at. */
export type CheckName =
  | 'schema'
  | 'objects'
  | 'rights'
  | 'bloat'
  | 'partitions'
  | 'xmin'
  | 'durability'
  | 'clock'
  | 'leases'
  | 'pauses'
  | 'types'
  | 'workers'

/** What there is to say for each code. */
export interface FindingFacts {
  readonly SCHEMA_CURRENT: { readonly version: number }
  readonly SCHEMA_NOT_CURRENT: Pick<SchemaFacts, 'state' | 'found' | 'needed'>
  readonly SCHEMA_CHANGED: { readonly steps: readonly string[] }
  readonly OBJECTS_SOUND: Nothing
  readonly OBJECT_BROKEN: BrokenObject
  readonly RIGHTS_SOUND: Nothing
  readonly RIGHT_SURPLUS: SurplusRight
  readonly TABLES_UNREADABLE: { readonly tables: readonly string[] }
  readonly TABLES_LEAN: Nothing
  readonly DEAD_TUPLES: {
    readonly table: string
    readonly deadTuples: number
    readonly liveTuples: number
    readonly lastVacuum: Date | null
  }
  readonly BLOAT: { readonly table: string; readonly bytes: number; readonly wastedBytes: number }
  readonly AUTOVACUUM_OFF: { readonly table: string }
  readonly PARTITIONS_AHEAD: { readonly madeUntil: Date; readonly daysAhead: number }
  readonly PARTITIONS_SHORT: { readonly madeUntil: Date; readonly daysAhead: number }
  readonly PARTITIONS_MISSING: { readonly partitions: readonly string[] }
  readonly PARTITIONS_UNEXPECTED: { readonly partitions: readonly string[] }
  readonly PARTITIONING_UNFINISHED: { readonly madeUntil: Date; readonly daysAhead: number }
  readonly XMIN_FREE: Nothing
  readonly XMIN_HELD: XminHolder
  readonly SESSIONS_HIDDEN: Nothing
  readonly DURABLE: Nothing
  readonly NOT_DURABLE: { readonly setting: string; readonly value: string }
  readonly CLOCKS_AGREE: { readonly skewMs: number }
  readonly CLOCK_SKEW: { readonly skewMs: number }
  readonly LEASES_SOUND: Nothing
  readonly LEASES_LAPSED: {
    readonly subscription: string
    readonly count: number
    readonly seconds: number
  }
  readonly NONE_PAUSED: Nothing
  readonly PAUSED: { readonly subscription: string; readonly by: string; readonly at: Date }
  readonly TYPES_KNOWN: Nothing
  readonly TYPES_NOT_COMPARED: Nothing
  readonly TYPES_UNKNOWN: { readonly types: readonly StoredType[] }
  readonly ALL_SERVED: Nothing
  readonly NO_WORKER: { readonly subscription: string; readonly hasPending: boolean }
}

/** A finding that says all by its code. */
export type Nothing = object

/** What a check found. Stable: programs may switch on it. */
export type FindingCode = keyof FindingFacts

/** One result of one check, judged. */
export type JudgedFinding = {
  [Code in FindingCode]: {
    readonly check: CheckName
    readonly severity: Severity
    readonly code: Code
    readonly facts: FindingFacts[Code]
  }
}[FindingCode]

/** One result of one check, with what it means and what to do about it. */
export type Finding = JudgedFinding & { readonly message: string; readonly advice: string | null }
