import { createHash } from 'node:crypto'
import { dirname } from 'node:path'
import type { Masking } from '../event/masking.ts'
import type { Clock } from '../runtime/clock.ts'
import type { ExportedEvent, ExportRange, ExportRecord, ExportStore } from '../store/export-store.ts'
import { EventCursor, syncDirectory, writeExportFile, writeText } from './export-files.ts'
import { type ExportFile, type ExportManifest, MANIFEST, manifestText, SUMS } from './export-manifest.ts'
import type { ExportRequest } from './export-options.ts'
import { exportRows, RowWriter } from './export-rows.ts'

/** What is to be written: the part of a stream after its last export. */
export interface ExportPlan {
  readonly request: ExportRequest
  readonly previous: ExportRecord | null
  readonly firstPosition: string
  readonly range: ExportRange
}

/** What is on disk. */
export interface WrittenExport {
  readonly manifest: ExportManifest
  readonly manifestSha256: string
  /** Those of its events that took the place of another. */
  readonly amended: readonly string[]
}

const PROGRESS_EVERY = 10_000

/** Counts what is written, and tells of it now and then. */
class Tally {
  events = 0
  late = 0
  readonly amended: string[] = []
  readonly files: ExportFile[] = []
  readonly #plan: ExportPlan
  readonly #first: bigint

  constructor(plan: ExportPlan) {
    this.#plan = plan
    this.#first = BigInt(plan.firstPosition)
  }

  add({ event, amendedFrom }: ExportedEvent): void {
    this.events += 1
    if (amendedFrom !== null) this.amended.push(event.eventId)
    if (BigInt(event.position) < this.#first) this.late += 1
    if (this.events % PROGRESS_EVERY === 0) this.tell()
  }

  close(file: ExportFile): void {
    this.files.push(file)
    this.tell()
  }

  tell(): void {
    const { request, range } = this.#plan
    request.onProgress({ events: this.events, of: range.events, files: this.files.length })
  }
}

/** Writes all files of an export, what says that it is complete last. */
export async function writeExport(
  parts: { readonly store: ExportStore; readonly masking: Masking; readonly clock: Clock },
  plan: ExportPlan,
  directory: string,
): Promise<WrittenExport> {
  const { request, firstPosition, range, previous } = plan
  const { stream, signal, maxFileEvents } = request
  const rows = new RowWriter(request.reveal ? null : parts.masking)
  const cursor = new EventCursor(exportRows(parts.store, { stream, firstPosition, range }))
  const tally = new Tally(plan)
  while ((await cursor.peek()) !== null) {
    const name = `events-${String(tally.files.length + 1).padStart(6, '0')}.ndjson.gz`
    const line = (event: ExportedEvent): string => rows.line(event)
    const onEvent = (event: ExportedEvent): void => tally.add(event)
    tally.close(
      await writeExportFile(cursor, { directory, name, mostEvents: maxFileEvents, signal, line, onEvent }),
    )
  }
  const manifest: ExportManifest = {
    format: 'commitpost-export',
    version: 1,
    stream,
    firstPosition,
    lastPosition: range.lastPosition,
    events: tally.events,
    late: tally.late,
    createdAt: parts.clock.now().toISOString(),
    masking: rows.masked,
    previousManifestSha256: previous?.manifestSha256 ?? null,
    files: tally.files,
  }
  return { manifest, manifestSha256: await seal(directory, manifest), amended: tally.amended }
}

/** Writes what the export is known and checked by, the manifest last. Returns the SHA-256 of the manifest. */
async function seal(directory: string, manifest: ExportManifest): Promise<string> {
  const text = manifestText(manifest)
  const manifestSha256 = createHash('sha256').update(text).digest('hex')
  const sums = [...manifest.files, { name: MANIFEST, sha256: manifestSha256 }]
  await writeText(directory, SUMS, sums.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join(''))
  await syncDirectory(directory)
  await writeText(directory, MANIFEST, text)
  await syncDirectory(directory)
  await syncDirectory(dirname(directory))
  return manifestSha256
}
