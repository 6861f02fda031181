import type { DeliveryStatus } from '../delivery/delivery.ts'
import type { OutboxEvent } from '../event/event.ts'

/** An export as the database knows it. */
export interface ExportRecord {
  readonly id: string
  readonly stream: string
  /** Every event of the stream from this position to `lastPosition` is in it. */
  readonly firstPosition: string
  readonly lastPosition: string
  /** How many are in its files. */
  readonly events: number
  /** The directory it was written to. */
  readonly location: string
  readonly manifestSha256: string
  /** Whether what the catalogue calls sensitive was masked. */
  readonly masked: boolean
  readonly exportedBy: string
  readonly createdAt: Date
  /** When its files were last found whole; null while nobody has read them again. */
  readonly verifiedAt: Date | null
}

/** Which exports to list: newest first. */
export interface ExportQuery {
  readonly stream?: string
  /** Only ids below this one: the last id of the page before. */
  readonly before?: string
  /** @default 50 */
  readonly limit?: number
}

/** A position up to which events may be given out, and the transaction before whose end nobody can tell whether all are there. */
export interface ExportBarrier {
  readonly position: string
  readonly xid: string
}

/** Up to where a stream is to be exported: no event published at or after this time. */
export type ExportBound =
  | { readonly kind: 'all' }
  | { readonly kind: 'until'; readonly time: Date }
  | { readonly kind: 'older-than'; readonly ageMs: number }

/** What there is to export. */
export interface ExportRange {
  readonly lastPosition: string
  /** Of the stream, from the first position on. */
  readonly events: number
  /** Where the first and the last of them stand; null where there is none. */
  readonly lowest: string | null
  readonly highest: string | null
}

/** One event of a range, before it is read. */
export interface ExportItem {
  readonly eventId: string
  readonly position: string
  /** Of its payload and headers, as JSON. */
  readonly bytes: number
}

/** What became of an event at one subscription, so far. */
export interface ExportedDelivery {
  readonly subscription: string
  readonly status: DeliveryStatus
  readonly attempts: number
  readonly processedAt: Date | null
}

/** An event with what became of it. */
export interface ExportedEvent {
  readonly event: OutboxEvent
  /** Its payload and headers as the database has them: a number may be larger than JavaScript can hold. */
  readonly payloadJson: string
  readonly headersJson: string
  readonly deliveries: readonly ExportedDelivery[]
  /** The event whose place it took; null for all others. */
  readonly amendedFrom: string | null
}

/** What is recorded of an export that is on disk. */
export interface NewExport {
  readonly stream: string
  readonly firstPosition: string
  readonly lastPosition: string
  readonly events: number
  readonly location: string
  readonly manifestSha256: string
  readonly masked: boolean
  /** Those of its events that took the place of another. */
  readonly amended: readonly string[]
  readonly operator: string
  readonly note: string | null
}

/** What cold exports ask of the database. */
export interface ExportStore {
  /** The last export of a stream. */
  lastExport(stream: string): Promise<ExportRecord | null>
  listExports(query: ExportQuery): Promise<readonly ExportRecord[]>
  /** The export with this manifest; where there is none, the one of the stream that begins at this position. */
  findExport(manifestSha256: string, stream: string, firstPosition: string): Promise<ExportRecord | null>
  /** Whether the stream has any event, or had any export. */
  isKnownStream(stream: string): Promise<boolean>
  proposeBarrier(): Promise<ExportBarrier>
  /** Whether every transaction that may have a position up to that of the barrier has ended. */
  isDecided(barrier: ExportBarrier): Promise<boolean>
  /** What there is of a stream from a position on, up to the bound and no further than a position that is decided. */
  exportRange(
    stream: string,
    firstPosition: string,
    decided: string,
    bound: ExportBound,
  ): Promise<ExportRange>
  /** The events of a stream from one position to another, in order. */
  exportItems(stream: string, from: string, to: string): Promise<readonly ExportItem[]>
  /** The first position after this one that any event may have, up to another; null where there is none. */
  nextPosition(after: string, upTo: string): Promise<string | null>
  /** Those that took the place of events before the position, and are in no export yet. */
  lateItems(stream: string, before: string): Promise<readonly ExportItem[]>
  /** These events, in order of their positions. */
  readExported(eventIds: readonly string[]): Promise<readonly ExportedEvent[]>
  /**
   * Writes it down with the operator's act.
   * @throws CommitpostError of code INVALID_STATE where another export of the stream came first.
   */
  recordExport(exported: NewExport): Promise<ExportRecord>
  /** The first events of a part of its range that the database has and that are not among `known`. */
  missingFromExport(
    exported: ExportRecord,
    from: string,
    to: string,
    known: readonly string[],
  ): Promise<readonly string[]>
  /** The events of an export that took the place of another. */
  amendedOf(exportId: string): Promise<readonly string[]>
  /** Writes down that the files were found whole. Returns when, by the database's clock. */
  verifyExport(exported: ExportRecord, operator: string, note: string | null): Promise<Date>
}
