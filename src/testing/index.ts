export type { EmbeddedPostgresOptions, StopMode } from './embedded-options.ts'
export { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres.ts'
export { EmbeddedPostgresError, type EmbeddedPostgresErrorCode } from './postgres/error.ts'
export { type ResolveDatabaseOptions, type ResolvedDatabase, resolveDatabase } from './resolve-database.ts'
