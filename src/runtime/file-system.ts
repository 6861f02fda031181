import { access } from 'node:fs/promises'
import { textProperty } from './property.ts'

/** Whether there is something of that name that may be seen. */
export async function exists(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch {
    return false
  }
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

/** Whether something failed at a file, and not in the database or the network. */
export function isOfFileSystem(error: unknown): boolean {
  return CALLS.has(textProperty(error, 'syscall'))
}
