import type {
  ArchiveTable,
  RetentionPace,
  RetentionPreview,
  RetentionRequest,
  RetentionRun,
  RetentionStep,
  RetentionStore,
} from '../retention-store.ts'
import type { PgPool } from './client.ts'
import { explained } from './explained.ts'
import type { QuotedSchema } from './identifiers.ts'

/** Retention in PostgreSQL, on the application's own pool: it is never in a hurry. */
export class PostgresRetentionStore implements RetentionStore {
  readonly #pool: PgPool
  readonly #schema: QuotedSchema

  constructor(pool: PgPool, schema: QuotedSchema) {
    this.#pool = pool
    this.#schema = schema
  }

  ensureArchive(archive: ArchiveTable): Promise<void> {
    return this.#ask('retention.archive', async () =>
      (await import('./ensure-archive.ts')).ensureArchive(this.#pool, this.#schema, archive),
    )
  }

  allowPolicy(request: RetentionRequest): Promise<void> {
    return this.#ask('retention.prepare', async () =>
      (await import('./allow-policy.ts')).allowPolicy(this.#pool, this.#schema, request),
    )
  }

  beginRetention(request: RetentionRequest, hour: number | null): Promise<string | null> {
    return this.#ask('retention.run', async () =>
      (await import('./begin-retention.ts')).beginRetention(this.#pool, this.#schema, request, hour),
    )
  }

  stepRetention(
    runId: string,
    stepper: string,
    pace: RetentionPace,
    act: { readonly operator: string; readonly note: string | null } | null,
  ): Promise<RetentionStep> {
    return this.#ask('retention.run', async () =>
      (await import('./step-retention.ts')).stepRetention(
        this.#pool,
        this.#schema,
        runId,
        stepper,
        pace,
        act,
      ),
    )
  }

  previewRetention(request: RetentionRequest): Promise<RetentionPreview> {
    return this.#ask('retention.run', async () =>
      (await import('./preview-retention.ts')).previewRetention(this.#pool, this.#schema, request),
    )
  }

  retentionRuns(policy: string | null): Promise<readonly RetentionRun[]> {
    return this.#ask('retention.status', async () =>
      (await import('./retention-runs.ts')).retentionRuns(this.#pool, this.#schema, policy),
    )
  }

  #ask<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    return explained(this.#schema, what, work)
  }
}
