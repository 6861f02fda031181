import type {
  ArchiveTable,
  RetentionPace,
  RetentionPreview,
  RetentionRequest,
  RetentionRun,
  RetentionStep,
  RetentionStore,
} from '../retention-store.ts'
import { allowPolicy } from './allow-policy.ts'
import { beginRetention } from './begin-retention.ts'
import type { PgPool } from './client.ts'
import { ensureArchive } from './ensure-archive.ts'
import { explained } from './explained.ts'
import type { QuotedSchema } from './identifiers.ts'
import { previewRetention } from './preview-retention.ts'
import { retentionRuns } from './retention-runs.ts'
import { stepRetention } from './step-retention.ts'

/** Retention in PostgreSQL, on the application's own pool: it is never in a hurry. */
export class PostgresRetentionStore implements RetentionStore {
  readonly #pool: PgPool
  readonly #schema: QuotedSchema

  constructor(pool: PgPool, schema: QuotedSchema) {
    this.#pool = pool
    this.#schema = schema
  }

  ensureArchive(archive: ArchiveTable): Promise<void> {
    return this.#ask('retention.archive', () => ensureArchive(this.#pool, this.#schema, archive))
  }

  allowPolicy(request: RetentionRequest): Promise<void> {
    return this.#ask('retention.prepare', () => allowPolicy(this.#pool, this.#schema, request))
  }

  beginRetention(request: RetentionRequest, hour: number | null): Promise<string | null> {
    return this.#ask('retention.run', () => beginRetention(this.#pool, this.#schema, request, hour))
  }

  stepRetention(
    runId: string,
    stepper: string,
    pace: RetentionPace,
    act: { readonly operator: string; readonly note: string | null } | null,
  ): Promise<RetentionStep> {
    return this.#ask('retention.run', () =>
      stepRetention(this.#pool, this.#schema, runId, stepper, pace, act),
    )
  }

  previewRetention(request: RetentionRequest): Promise<RetentionPreview> {
    return this.#ask('retention.run', () => previewRetention(this.#pool, this.#schema, request))
  }

  retentionRuns(policy: string | null): Promise<readonly RetentionRun[]> {
    return this.#ask('retention.status', () => retentionRuns(this.#pool, this.#schema, policy))
  }

  #ask<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    return explained(this.#schema, what, work)
  }
}
