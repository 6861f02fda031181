/** Why an embedded server could not be had; stable, for programs. `message` is for people and names the remedy. */
export type EmbeddedPostgresErrorCode =
  | 'EMBEDDED_POSTGRES_NOT_INSTALLED'
  | 'EMBEDDED_POSTGRES_UNSUPPORTED_PLATFORM'
  | 'EMBEDDED_POSTGRES_DATA_DIRECTORY'
  | 'EMBEDDED_POSTGRES_IN_USE'
  | 'EMBEDDED_POSTGRES_START_FAILED'
  | 'EMBEDDED_POSTGRES_STOPPED'

/** Thrown when the embedded PostgreSQL server cannot be installed, initialised, started or reached. */
export class EmbeddedPostgresError extends Error {
  readonly code: EmbeddedPostgresErrorCode

  constructor(code: EmbeddedPostgresErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'EmbeddedPostgresError'
    this.code = code
  }
}
