import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { textProperty } from '../runtime/property.ts'
import { Meter } from './export-files.ts'
import {
  type ExportFile,
  type ExportManifest,
  MANIFEST,
  PARTIAL,
  parseManifest,
  SUMS,
} from './export-manifest.ts'
import { ExportFault } from './export-report.ts'
import { fileError, isMissing } from './file-error.ts'

/** An export on disk whose manifest is in order. */
export interface OpenedExport {
  readonly directory: string
  readonly manifest: ExportManifest
  readonly manifestSha256: string
}

/** The directory that is meant: itself, or the one that the manifest is in. @throws FILE_ERROR where there is nothing. */
export async function exportDirectory(path: string): Promise<string> {
  const full = resolve(path)
  try {
    if ((await stat(full)).isDirectory()) return full
  } catch (error) {
    // The manifest of a half-written export is not there, its directory is.
    if (!isMissing(error) || basename(full) !== MANIFEST) {
      throw fileError('export-missing', full, error)
    }
  }
  if (basename(full) === MANIFEST) return dirname(full)
  throw fileError('not-an-export', full, { code: 'ENOTDIR' })
}

/** Reads the manifest and sees that there are no other files than it names. @throws ExportFault */
export async function openExport(directory: string): Promise<OpenedExport> {
  const names = await readdir(directory)
  if (!names.includes(MANIFEST)) {
    const partial = names.find((name) => name.endsWith(PARTIAL)) ?? null
    const detail = `there is no ${MANIFEST}, which is written last: the run that wrote this never came to its end`
    throw new ExportFault('half-written', partial, detail)
  }
  const bytes = await readFile(join(directory, MANIFEST))
  const manifestSha256 = createHash('sha256').update(bytes).digest('hex')
  assertSums(await readSums(directory), manifestSha256)
  const manifest = parseManifest(bytes.toString('utf8'))
  if (manifest === null) {
    throw new ExportFault('manifest-unknown', MANIFEST, 'it is no manifest of a version that is known here')
  }
  const known = new Set([MANIFEST, SUMS, ...manifest.files.map(({ name }) => name)])
  const extra = names.toSorted().find((name) => !known.has(name))
  if (extra !== undefined) throw new ExportFault('extra-file', extra, 'the manifest does not name it')
  return { directory, manifest, manifestSha256 }
}

async function readSums(directory: string): Promise<string> {
  try {
    return await readFile(join(directory, SUMS), 'utf8')
  } catch (error) {
    if (isMissing(error)) throw new ExportFault('missing-file', SUMS, 'it is not there')
    throw error
  }
}

function assertSums(sums: string, manifestSha256: string): void {
  const line = sums.split('\n').find((each) => each.endsWith(`  ${MANIFEST}`))
  if (line?.startsWith(`${manifestSha256} `) === true) return
  const expected = line?.slice(0, line.indexOf(' ')) ?? 'nothing'
  const detail = `its SHA-256 is ${manifestSha256}, and ${SUMS} says ${expected}: one of the two was edited`
  throw new ExportFault('manifest-edited', MANIFEST, detail)
}

/** Reads one file and compares it with what the manifest says. Returns the ids of its events. @throws ExportFault */
export async function readExportFile(directory: string, file: ExportFile): Promise<readonly string[]> {
  const path = join(directory, file.name)
  // Before anything is decompressed: what was changed is said to be changed, whatever it has become.
  assertBytes(file, await meterOf(path, file))
  const content = new Meter()
  const eventIds: string[] = []
  let fault: unknown = null
  try {
    await pipeline(createReadStream(path), createGunzip(), async (chunks: AsyncIterable<Buffer>) => {
      try {
        for await (const line of linesOf(chunks, content, file)) {
          if (eventIds.length === file.events) throw otherContent(file)
          eventIds.push(eventIdOf(line, file))
        }
      } catch (error) {
        fault = error
        throw error
      }
    })
  } catch (error) {
    // Streams may say no more than that they were broken off.
    if (fault instanceof ExportFault) throw fault
    if (textProperty(error, 'code')?.startsWith('Z_') !== true) throw error
    throw new ExportFault('wrong-content', file.name, 'it cannot be decompressed')
  }
  assertContent(file, content, eventIds.length)
  return eventIds
}

async function meterOf(path: string, file: ExportFile): Promise<Meter> {
  const meter = new Meter()
  try {
    // Neither a device, which may have no end, nor a pipe, which may never begin.
    if (!(await stat(path)).isFile()) throw new ExportFault('changed-file', file.name, 'it is no file')
    for await (const chunk of createReadStream(path)) meter.add(chunk as Buffer)
    return meter
  } catch (error) {
    if (isMissing(error)) throw new ExportFault('missing-file', file.name, 'it is not there')
    throw error
  }
}

function assertBytes(file: ExportFile, compressed: Meter): void {
  if (compressed.bytes < file.bytes) {
    const detail = `it has ${compressed.bytes} of its ${file.bytes} bytes: its end is missing`
    throw new ExportFault('truncated-file', file.name, detail)
  }
  const found = compressed.sha256()
  if (compressed.bytes !== file.bytes || found !== file.sha256) {
    const detail = `its bytes were changed: SHA-256 ${found} of ${compressed.bytes} bytes, and the manifest says ${file.sha256} of ${file.bytes}`
    throw new ExportFault('changed-file', file.name, detail)
  }
}

function assertContent(file: ExportFile, content: Meter, events: number): void {
  if (content.sha256() !== file.contentSha256 || content.bytes !== file.contentBytes) throw otherContent(file)
  if (events !== file.events) {
    const detail = `it holds ${events} events, and the manifest says ${file.events}`
    throw new ExportFault('wrong-content', file.name, detail)
  }
}

function otherContent({ name }: ExportFile): ExportFault {
  return new ExportFault('wrong-content', name, 'what it holds is not what the manifest says')
}

function noEvent({ name }: ExportFile): ExportFault {
  return new ExportFault('wrong-content', name, 'it holds a line that is no event')
}

function eventIdOf(line: string, file: ExportFile): string {
  let eventId: string | undefined
  try {
    eventId = textProperty(JSON.parse(line), 'eventId')
  } catch {
    throw noEvent(file)
  }
  if (eventId === undefined) throw noEvent(file)
  return eventId
}

const LINE_END = 0x0a
/** More than an event can be: a text of JavaScript has no room for more. */
const LONGEST_LINE = 500 * 1024 * 1024

/** The lines of what is compressed. It may be made to fill any memory: what goes beyond the manifest is not looked at. */
async function* linesOf(
  chunks: AsyncIterable<Buffer>,
  meter: Meter,
  file: ExportFile,
): AsyncGenerator<string, void, undefined> {
  let parts: Buffer[] = []
  let length = 0
  for await (const chunk of chunks) {
    meter.add(chunk)
    if (meter.bytes > file.contentBytes) throw otherContent(file)
    let from = 0
    for (let end = chunk.indexOf(LINE_END); end >= 0; end = chunk.indexOf(LINE_END, from)) {
      parts.push(chunk.subarray(from, end))
      yield Buffer.concat(parts).toString('utf8')
      parts = []
      length = 0
      from = end + 1
    }
    if (from < chunk.length) parts.push(chunk.subarray(from))
    length += chunk.length - from
    if (length > LONGEST_LINE) throw noEvent(file)
  }
  if (parts.length > 0) yield Buffer.concat(parts).toString('utf8')
}
