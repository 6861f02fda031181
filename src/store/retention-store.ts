/** A table that events are moved to. */
export interface ArchiveTable {
  readonly schema: string
  readonly table: string
}

/** What is to be done with the events of a stream that everybody is done with. */
export interface RetentionRequest {
  readonly policy: string
  /** A stream, or a pattern with `*`. */
  readonly stream: string
  /** Streams and patterns of the policies that come before: what they take is not this one's. */
  readonly before: readonly string[]
  /** How long ago the last delivery must have been done. */
  readonly keepSeconds: number
  /** Null deletes. */
  readonly archive: ArchiveTable | null
  /** The paths to mask by stored event type; events of other types stay where they are. Null masks nothing. */
  readonly mask: Readonly<Record<string, readonly string[]>> | null
  /** True keeps what no verified export has. */
  readonly requireExport: boolean
}

/** How much at a time, and how much of the time. */
export interface RetentionPace {
  readonly batchSize: number
  readonly pauseMs: number
  readonly share: number
}

/**
 * Whom a run waits for. `holder`: somebody else carries it out, or did until half a minute ago. `registration`: a
 * subscription is registering or joining. `tables`: a transaction uses the tables, of which a period is to be dropped.
 */
export type RetentionWait = 'holder' | 'registration' | 'tables'

/** What became of one batch. */
export interface RetentionStep {
  /** `busy`: somebody else carries it out, or a subscription is registering; nothing was done. */
  readonly state: 'running' | 'busy' | 'done'
  readonly deleted: number
  readonly archived: number
  /** Not before so long. */
  readonly waitMs: number
  /** What it is busy with; null where it is not, or only pauses. */
  readonly waitsFor: RetentionWait | null
}

/** One time that a policy was or is carried out. */
export interface RetentionRun {
  readonly id: string
  readonly policy: string
  readonly stream: string
  /** Events whose last delivery was done before it. */
  readonly cutoff: Date
  /** `schema.table`; null where events are deleted. */
  readonly archive: string | null
  /** Nothing up to this position is looked at again in this run. */
  readonly lastPosition: string
  readonly deleted: number
  readonly archived: number
  /** Left where they are, because no verified export has them. */
  readonly awaitingExport: number
  /** Left where they are, because the catalogue does not say what of them is to be masked. */
  readonly unknownType: number
  /** Who carries it out, or did so last. */
  readonly holder: string | null
  readonly startedAt: Date
  readonly updatedAt: Date
  /** Null while it goes on. */
  readonly finishedAt: Date | null
  /** True where its policy was changed before it was done: another run does the rest. */
  readonly superseded: boolean
}

/** What a run would come to. */
export interface RetentionPreview {
  readonly events: number
  readonly awaitingExport: number
  readonly unknownType: number
}

/** Events that everybody is done with: deleted, or moved to an archive. */
export interface RetentionStore {
  /** Makes the archive unless it is there. @throws INVALID_OPTIONS where a table of that name has another shape. */
  ensureArchive(archive: ArchiveTable): Promise<void>
  /** Lets workers that do not own the tables carry this policy out. Needs the rights of the owner. */
  allowPolicy(request: RetentionRequest): Promise<void>
  /**
   * Begins a run, or finds the one that was not finished. With an hour (UTC), as a worker does it: null where one was
   * begun since it last struck, by the database's clock, or while somebody carries out another policy of that name.
   */
  beginRetention(request: RetentionRequest, hour: number | null): Promise<string | null>
  /** One batch, in one transaction with its record: of that operator, or of the policy where that is null. */
  stepRetention(
    runId: string,
    stepper: string,
    pace: RetentionPace,
    act: { readonly operator: string; readonly note: string | null } | null,
  ): Promise<RetentionStep>
  /** What a run that begins now would come to. Changes nothing. */
  previewRetention(request: RetentionRequest): Promise<RetentionPreview>
  /** The newest run of each policy, or all of one, newest first. */
  retentionRuns(policy: string | null): Promise<readonly RetentionRun[]>
}
