import { textProperty } from '../runtime/property.ts'
import { RefusedError } from '../runtime/refused-error.ts'

const WORDS = {
  'export-unreadable': 'The export could not be read',
  'export-missing': 'There is no export to verify',
  'not-an-export': 'This is neither the directory of an export nor its manifest',
  'directory-unusable': 'The directory for exports cannot be used',
  'directory-is-file': 'The directory for exports is a file',
  'directory-not-made': 'The directory of the export cannot be made',
  'export-not-written': 'The export could not be written',
} as const

/** What a system call said against a file, as an error that names the file. */
export function fileError(reason: keyof typeof WORDS, path: string, cause: unknown): RefusedError {
  const code = textProperty(cause, 'code') ?? 'unknown'
  return new RefusedError(reason, `${WORDS[reason]} (${code}): ${path}`, { data: { path, code }, cause })
}

/** Whether a system call failed because there is nothing of that name. */
export function isMissing(error: unknown): boolean {
  return textProperty(error, 'code') === 'ENOENT'
}
