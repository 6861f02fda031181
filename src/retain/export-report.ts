/**
 * What is wrong with an export.
 * - `half-written`: there is no manifest, so the run that wrote it never came to its end.
 * - `manifest-edited`: the manifest is not the one that was written.
 * - `manifest-unknown`: it is no manifest, or of a version that this program does not know.
 * - `missing-file`, `extra-file`: a file of the manifest is not there; one is there that it does not name.
 * - `truncated-file`, `changed-file`: a file is shorter than it was; its bytes are others.
 * - `wrong-content`: what a file holds is not what the manifest says of it.
 * - `not-recorded`: the database knows nothing of it: its run ended before it was recorded, or it is of another database.
 * - `record-differs`: the database has recorded something else for this part of the stream.
 * - `missing-event`: the database has events of its range that are not in the files.
 */
export type ExportProblemKind =
  | 'half-written'
  | 'manifest-edited'
  | 'manifest-unknown'
  | 'missing-file'
  | 'extra-file'
  | 'truncated-file'
  | 'changed-file'
  | 'wrong-content'
  | 'not-recorded'
  | 'record-differs'
  | 'missing-event'

/** The first thing that is wrong with an export. */
export interface ExportProblem {
  readonly kind: ExportProblemKind
  /** The file it was found in; null where it is about the whole. */
  readonly file: string | null
  /** What was expected and what was found, in English. */
  readonly detail: string
}

/** What `verify` found. */
export interface ExportReport {
  readonly holds: boolean
  /** The directory that was read. */
  readonly directory: string
  /** Null where there is none. */
  readonly manifestSha256: string | null
  readonly stream: string | null
  readonly firstPosition: string | null
  readonly lastPosition: string | null
  /** Files and events that were read and are as they were written. */
  readonly files: number
  readonly events: number
  /** The record in the database; null where it was not asked, or has none. */
  readonly exportId: string | null
  /** When it was verified, by the database's clock: just now, where an operator was named and it holds. */
  readonly verifiedAt: Date | null
  /** Null where it holds. */
  readonly problem: ExportProblem | null
}

/** Ends a verification: the first thing that is wrong. */
export class ExportFault extends Error {
  readonly problem: ExportProblem

  constructor(kind: ExportProblemKind, file: string | null, detail: string) {
    super(detail)
    this.name = 'ExportFault'
    this.problem = { kind, file, detail }
  }
}
