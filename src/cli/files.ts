import { open, readFile, rename, rm, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { exists, isOfFileSystem } from '../runtime/file-system.ts'
import { CliError } from './cli-error.ts'
import { fileReason } from './file-reason.ts'

/** Reads a text file of a size that makes sense. @throws CliError of code FILE_ERROR that names the file. */
export async function readTextFile(file: string, mostBytes: number): Promise<string> {
  try {
    const { size } = await stat(file)
    if (size <= mostBytes) return await readFile(file, 'utf8')
  } catch (error) {
    throw fileFailed(file, error)
  }
  throw new CliError('FILE_ERROR', ({ care }) => care.fileTooLarge(file, String(mostBytes)))
}

/**
 * Writes a new file, readable by its owner only. It is written under another name and gets its own when it is complete:
 * whoever finds it finds all of it.
 * @throws CliError of code FILE_ERROR that names the file; what the lines themselves fail with as it is.
 */
export async function writeNewFile(file: string, lines: AsyncIterable<string>): Promise<void> {
  if (await exists(file)) throw new CliError('FILE_ERROR', ({ care }) => care.fileExists(file))
  const partial = `${file}.${process.pid}.partial`
  try {
    const handle = await open(partial, 'wx', 0o600)
    await pipeline(Readable.from(lines), handle.createWriteStream({ flush: true }))
    await rename(partial, file)
  } catch (error) {
    await rm(partial, { force: true })
    throw isOfFileSystem(error) ? fileFailed(file, error) : error
  }
}

function fileFailed(file: string, cause: unknown): CliError {
  return new CliError('FILE_ERROR', ({ care }) => care.fileFailed(file, fileReason(cause, care)), { cause })
}
