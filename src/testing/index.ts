export {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  type StopMode,
  startEmbeddedPostgres,
} from './embedded-postgres.ts'
export { EmbeddedPostgresError, type EmbeddedPostgresErrorCode } from './postgres/error.ts'
export { type ResolveDatabaseOptions, type ResolvedDatabase, resolveDatabase } from './resolve-database.ts'
