import { CommitpostError } from '../runtime/errors.ts'
import { textProperty } from '../runtime/property.ts'

/** What a system call said against a file, as an error that names the file. */
export function fileError(what: string, path: string, cause: unknown): CommitpostError {
  const reason = textProperty(cause, 'code') ?? 'unknown'
  return new CommitpostError('FILE_ERROR', `${what} (${reason}): ${path}`, { cause })
}

/** Whether a system call failed because there is nothing of that name. */
export function isMissing(error: unknown): boolean {
  return textProperty(error, 'code') === 'ENOENT'
}

/** Whether something failed at a file, and not in the database or the network. */
export function isOfFileSystem(error: unknown): boolean {
  return CALLS.has(textProperty(error, 'syscall'))
}

// Errors of the network have a system call too: connect, read.
const CALLS: ReadonlySet<string | undefined> = new Set([
  'open',
  'write',
  'writev',
  'rename',
  'fsync',
  'close',
  'mkdir',
  'stat',
  'scandir',
])
