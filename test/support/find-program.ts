import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Where Debian and others put servers and their tools, besides what is in the path. */
const SYSTEM_DIRECTORIES = ['/usr/sbin', '/usr/local/sbin', '/usr/local/bin', '/opt/homebrew/bin']

/** A program of this machine, or null if it is not installed. */
export function findProgram(name: string): string | null {
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), ...SYSTEM_DIRECTORIES]
  return directories.map((directory) => join(directory, name)).find(isExecutable) ?? null
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
