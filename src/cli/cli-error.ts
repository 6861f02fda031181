import type { Messages } from './messages/messages.ts'

/** Every code an error of the command line itself can carry, as `--json` prints it. Stable. */
export type CliErrorCode =
  | 'USAGE'
  | 'DATABASE_UNREACHABLE'
  | 'DATABASE_REFUSED'
  | 'DATABASE_ERROR'
  | 'DRIVER_MISSING'
  | 'CONFIG_INVALID'
  | 'FILE_ERROR'
  | 'DEMO_SCHEMA_EXISTS'
  | 'CANNOT_LISTEN'

/**
 * What a command ends with: 0 done, 1 failed, 2 called wrongly, 3 done and a fault was found. A signal that ends it at
 * once makes that 130 or 143.
 */
export type ExitCode = 0 | 1 | 2 | 3

/** A failure the command line explains in the user's language. */
export class CliError extends Error {
  readonly code: CliErrorCode
  readonly exitCode: ExitCode
  readonly explain: (messages: Messages) => string

  constructor(code: CliErrorCode, explain: (messages: Messages) => string, options?: ErrorOptions) {
    super(code, options)
    this.name = 'CliError'
    this.code = code
    this.exitCode = code === 'USAGE' ? 2 : 1
    this.explain = explain
  }
}
