import { isOfFileSystem } from '../runtime/file-system.ts'
import type { OperatorAct } from '../runtime/operator-act.ts'
import type { ExportRecord, ExportStore } from '../store/export-store.ts'
import type { ExportFile, ExportManifest } from './export-manifest.ts'
import { ExportFault, type ExportReport } from './export-report.ts'
import { fileError } from './file-error.ts'
import { exportDirectory, type OpenedExport, openExport, readExportFile } from './read-export.ts'

/** What is known of an export so far; grows while it is verified. */
type Findings = { -readonly [Name in keyof ExportReport]: ExportReport[Name] }

/**
 * Reads all of an export again and compares it with its manifest and, where there is a store, with what the database has
 * recorded and still has. With an act it is recorded as verified, if it holds.
 * @throws CommitpostError of code FILE_ERROR where there is nothing to be read.
 */
export async function verifyExport(
  path: string,
  store: ExportStore | null,
  act: OperatorAct | null,
): Promise<ExportReport> {
  const directory = await exportDirectory(path)
  const found: Findings = {
    holds: false,
    directory,
    manifestSha256: null,
    stream: null,
    firstPosition: null,
    lastPosition: null,
    files: 0,
    events: 0,
    exportId: null,
    verifiedAt: null,
    problem: null,
  }
  try {
    await verifyAll(directory, store, act, found)
    return { ...found, holds: true }
  } catch (error) {
    if (error instanceof ExportFault) return { ...found, problem: error.problem }
    throw isOfFileSystem(error) ? fileError('export-unreadable', directory, error) : error
  }
}

async function verifyAll(
  directory: string,
  store: ExportStore | null,
  act: OperatorAct | null,
  found: Findings,
): Promise<void> {
  const opened = await openExport(directory)
  const { stream, firstPosition, lastPosition } = opened.manifest
  Object.assign(found, { manifestSha256: opened.manifestSha256, stream, firstPosition, lastPosition })
  if (store === null) return readFiles(opened, found, null)
  const record = await recordOf(store, opened)
  found.exportId = record.id
  found.verifiedAt = record.verifiedAt
  const comparison = await Comparison.open(store, record, opened.manifest)
  await readFiles(opened, found, comparison)
  await comparison.end()
  if (act === null) return
  found.verifiedAt = await store.verifyExport(record, act.operator, act.note ?? null)
}

async function readFiles(
  { directory, manifest }: OpenedExport,
  found: Findings,
  comparison: Comparison | null,
): Promise<void> {
  for (const file of manifest.files) {
    const eventIds = await readExportFile(directory, file)
    found.files += 1
    found.events += eventIds.length
    await comparison?.compare(file, eventIds)
  }
  if (found.events === manifest.events) return
  const detail = `its files hold ${found.events} events, and the manifest says ${manifest.events}`
  throw new ExportFault('wrong-content', null, detail)
}

/** What the database has recorded of this export. @throws ExportFault where that is nothing, or something else. */
async function recordOf(
  store: ExportStore,
  { manifest, manifestSha256 }: OpenedExport,
): Promise<ExportRecord> {
  const { stream, firstPosition } = manifest
  const record = await store.findExport(manifestSha256, stream, firstPosition)
  if (record === null) {
    const detail =
      'the database has no export with this manifest: its run ended before it was recorded, so the next one begins at ' +
      'the same position, or it is of another database'
    throw new ExportFault('not-recorded', null, detail)
  }
  if (record.manifestSha256 !== manifestSha256) {
    const detail =
      `for stream "${stream}" from position ${firstPosition} on, the database has recorded export ${record.id} with ` +
      `the manifest ${record.manifestSha256}, and this one is ${manifestSha256}`
    throw new ExportFault('record-differs', null, detail)
  }
  const isSame = record.events === manifest.events && record.lastPosition === manifest.lastPosition
  if (isSame && record.firstPosition === firstPosition) return record
  const detail = `the record of export ${record.id} was changed: \`commitpost audit verify\` follows the chain`
  throw new ExportFault('record-differs', null, detail)
}

/** Holds the events of the database against those in the files: what retention would remove must be there. */
class Comparison {
  readonly #store: ExportStore
  readonly #record: ExportRecord
  readonly #lastFile: ExportFile | undefined
  /** Those that took the place of another and have not been seen yet. */
  readonly #amended: Set<string>
  #from: string

  private constructor(
    store: ExportStore,
    record: ExportRecord,
    manifest: ExportManifest,
    amended: Set<string>,
  ) {
    this.#store = store
    this.#record = record
    this.#lastFile = manifest.files.at(-1)
    this.#amended = amended
    this.#from = manifest.firstPosition
  }

  static async open(store: ExportStore, record: ExportRecord, manifest: ExportManifest): Promise<Comparison> {
    return new Comparison(store, record, manifest, new Set(await store.amendedOf(record.id)))
  }

  async compare(file: ExportFile, eventIds: readonly string[]): Promise<void> {
    for (const eventId of eventIds) this.#amended.delete(eventId)
    const to = file === this.#lastFile ? this.#record.lastPosition : file.lastPosition
    const missing = await this.#store.missingFromExport(this.#record, this.#from, to, eventIds)
    if (missing.length > 0) throw missingEvents(file.name, missing)
    // Files of late events lie before the range.
    const next = BigInt(to) + 1n
    if (next > BigInt(this.#from)) this.#from = String(next)
  }

  async end(): Promise<void> {
    if (this.#amended.size > 0) throw missingEvents(null, [...this.#amended])
    if (this.#lastFile !== undefined) return
    const { firstPosition, lastPosition } = this.#record
    const missing = await this.#store.missingFromExport(this.#record, firstPosition, lastPosition, [])
    if (missing.length > 0) throw missingEvents(null, missing)
  }
}

function missingEvents(file: string | null, eventIds: readonly string[]): ExportFault {
  const some = eventIds.slice(0, 3).join(', ')
  return new ExportFault('missing-event', file, `the database has events that are not in it: ${some}`)
}
