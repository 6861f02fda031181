import { CommitpostError } from '../runtime/errors.ts'
import { textProperty } from '../runtime/property.ts'
import { redact } from '../runtime/redact.ts'
import { INSUFFICIENT_PRIVILEGE, isSqlState } from '../runtime/sql-state.ts'
import { describeError } from '../runtime/text.ts'
import { CliError, type ExitCode } from './cli-error.ts'
import type { Messages } from './messages/messages.ts'
import { safeBlock } from './text/safe.ts'

/** A failure in the form it is shown in: clean of passwords and of control characters. */
export interface Failure {
  readonly code: string
  readonly message: string
  readonly exitCode: ExitCode
}

/** Says what a thrown value means for the person at the terminal. */
export function describeFailure(error: unknown, messages: Messages): Failure {
  const { code, message, exitCode } = explain(error, messages)
  return { code, message: redact(safeBlock(message)), exitCode }
}

/** The stack of an error and of its causes, for `--debug`. */
export function stackOf(error: unknown): string {
  const own = error instanceof Error ? (error.stack ?? String(error)) : String(error)
  const cause =
    error instanceof Error && error.cause !== undefined ? `\ncaused by ${stackOf(error.cause)}` : ''
  return redact(safeBlock(own + cause))
}

function explain(error: unknown, messages: Messages): Failure {
  if (error instanceof CliError) {
    return { code: error.code, message: error.explain(messages), exitCode: error.exitCode }
  }
  // What the server said is explained here in the user's language.
  if (error instanceof CommitpostError && error.code === 'STORE_REFUSED') {
    return explain(error.cause, messages)
  }
  if (error instanceof CommitpostError) {
    return { code: error.code, message: messages.errors.library(error), exitCode: 1 }
  }
  const code = textProperty(error, 'code') ?? ''
  // The driver calls all its errors "error": what the server said is enough.
  const reason = textProperty(error, 'message') || describeError(error)
  // Errors of the embedded server are written for people as they are.
  if (code.startsWith('EMBEDDED_POSTGRES_')) return { code, message: reason, exitCode: 1 }
  if (code === INSUFFICIENT_PRIVILEGE) {
    return { code: 'DATABASE_ERROR', message: messages.errors.rightMissing(code, reason), exitCode: 1 }
  }
  if (isSqlState(code)) {
    return { code: 'DATABASE_ERROR', message: messages.errors.database(code, reason), exitCode: 1 }
  }
  return { code: 'INTERNAL', message: messages.errors.unexpected(describeError(error)), exitCode: 1 }
}
