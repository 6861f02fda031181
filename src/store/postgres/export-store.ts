import type {
  ExportBarrier,
  ExportBound,
  ExportedEvent,
  ExportItem,
  ExportQuery,
  ExportRange,
  ExportRecord,
  ExportStore,
  NewExport,
} from '../export-store.ts'
import type { PgPool } from './client.ts'
import { explained } from './explained.ts'
import type { QuotedSchema } from './identifiers.ts'

/** What cold exports ask of PostgreSQL. */
export class PostgresExportStore implements ExportStore {
  readonly #pool: PgPool
  readonly #schema: QuotedSchema

  constructor(pool: PgPool, schema: QuotedSchema) {
    this.#pool = pool
    this.#schema = schema
  }

  async lastExport(stream: string): Promise<ExportRecord | null> {
    const [last] = await this.listExports({ stream, limit: 1 })
    return last ?? null
  }

  listExports(query: ExportQuery): Promise<readonly ExportRecord[]> {
    return this.#ask('exports.list', async () =>
      (await import('./find-exports.ts')).findExports(this.#pool, this.#schema, query),
    )
  }

  findExport(manifestSha256: string, stream: string, first: string): Promise<ExportRecord | null> {
    return this.#ask('exports.verify', async () =>
      (await import('./find-exports.ts')).findExport(this.#pool, this.#schema, manifestSha256, stream, first),
    )
  }

  isKnownStream(stream: string): Promise<boolean> {
    return this.#ask('exports.run', async () =>
      (await import('./export-range.ts')).isKnownStream(this.#pool, this.#schema, stream),
    )
  }

  proposeBarrier(): Promise<ExportBarrier> {
    return this.#ask('exports.run', async () =>
      (await import('./export-range.ts')).proposeBarrier(this.#pool, this.#schema),
    )
  }

  isDecided(barrier: ExportBarrier): Promise<boolean> {
    return this.#ask('exports.run', async () =>
      (await import('./export-range.ts')).isDecided(this.#pool, barrier),
    )
  }

  exportRange(stream: string, first: string, decided: string, bound: ExportBound): Promise<ExportRange> {
    return this.#ask('exports.run', async () =>
      (await import('./export-range.ts')).exportRange(
        this.#pool,
        this.#schema,
        stream,
        first,
        decided,
        bound,
      ),
    )
  }

  nextPosition(after: string, upTo: string): Promise<string | null> {
    return this.#ask('exports.run', async () =>
      (await import('./export-items.ts')).nextPosition(this.#pool, this.#schema, after, upTo),
    )
  }

  exportItems(stream: string, from: string, to: string): Promise<readonly ExportItem[]> {
    return this.#ask('exports.run', async () =>
      (await import('./export-items.ts')).exportItems(this.#pool, this.#schema, stream, from, to),
    )
  }

  lateItems(stream: string, before: string): Promise<readonly ExportItem[]> {
    return this.#ask('exports.run', async () =>
      (await import('./export-items.ts')).lateItems(this.#pool, this.#schema, stream, before),
    )
  }

  readExported(eventIds: readonly string[]): Promise<readonly ExportedEvent[]> {
    return this.#ask('exports.run', async () =>
      (await import('./read-exported.ts')).readExported(this.#pool, this.#schema, eventIds),
    )
  }

  recordExport(exported: NewExport): Promise<ExportRecord> {
    return this.#ask('exports.run', async () =>
      (await import('./record-export.ts')).recordExport(this.#pool, this.#schema, exported),
    )
  }

  missingFromExport(
    exported: ExportRecord,
    from: string,
    to: string,
    known: readonly string[],
  ): Promise<readonly string[]> {
    return this.#ask('exports.verify', async () =>
      (await import('./verify-export.ts')).missingFromExport(
        this.#pool,
        this.#schema,
        exported,
        from,
        to,
        known,
      ),
    )
  }

  amendedOf(exportId: string): Promise<readonly string[]> {
    return this.#ask('exports.verify', async () =>
      (await import('./verify-export.ts')).amendedOf(this.#pool, this.#schema, exportId),
    )
  }

  verifyExport(exported: ExportRecord, operator: string, note: string | null): Promise<Date> {
    return this.#ask('exports.verify', async () =>
      (await import('./verify-export.ts')).verifyExport(this.#pool, this.#schema, exported, operator, note),
    )
  }

  #ask<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    return explained(this.#schema, what, work)
  }
}
