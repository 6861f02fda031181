import { isRecord } from '../runtime/option-checks.ts'

/** The file that says what an export holds. It is written last: where it is missing, the export is half-written. */
export const MANIFEST = 'manifest.json'

/** The hashes of all files, as `sha256sum -c` reads them. */
export const SUMS = 'SHA256SUMS'

/** What a file is called until all of it is on disk. */
export const PARTIAL = '.partial'

/** One file of an export: events as NDJSON, compressed with gzip. */
export interface ExportFile {
  readonly name: string
  readonly events: number
  readonly firstPosition: string
  readonly lastPosition: string
  /** Of the file as it is on disk. */
  readonly bytes: number
  readonly sha256: string
  /** Of what is compressed in it. */
  readonly contentBytes: number
  readonly contentSha256: string
}

/** What of the payloads is not in the files. */
export interface ExportMasking {
  /** False where somebody asked for everything. */
  readonly masked: boolean
  /** The paths that are masked, by the stored type of the event. */
  readonly fields: Readonly<Record<string, readonly string[]>>
}

/** What an export holds, as `manifest.json` says it. */
export interface ExportManifest {
  readonly format: 'commitpost-export'
  readonly version: 1
  readonly stream: string
  /** Every event of the stream from here to `lastPosition` is in the files. */
  readonly firstPosition: string
  readonly lastPosition: string
  readonly events: number
  /** How many of them took the place of an event before `firstPosition`, after that had been exported. */
  readonly late: number
  readonly createdAt: string
  readonly masking: ExportMasking
  /** The SHA-256 of the manifest of the stream's export before this one; null for the first. */
  readonly previousManifestSha256: string | null
  readonly files: readonly ExportFile[]
}

/** The text of `manifest.json`. */
export function manifestText(manifest: ExportManifest): string {
  return `${JSON.stringify(manifest, null, 2)}\n`
}

/** Reads a manifest; null where the text is none, or of a version that is not known. */
export function parseManifest(text: string): ExportManifest | null {
  try {
    const parsed: unknown = JSON.parse(text)
    return isManifest(parsed) ? parsed : null
  } catch {
    return null
  }
}

const POSITION = /^\d{1,19}$/
const HASH = /^[0-9a-f]{64}$/
/** No way out of the directory. */
const FILE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/
/** Of one file: more than any has, and few enough for their ids to be held in memory. */
const MOST_EVENTS = 1_000_000

function isManifest(value: unknown): value is ExportManifest {
  if (!isRecord(value)) return false
  const { format, version, stream, files, masking } = value
  return (
    format === 'commitpost-export' &&
    version === 1 &&
    typeof stream === 'string' &&
    hasRange(value) &&
    isCount(value['events']) &&
    isRecord(masking) &&
    Array.isArray(files) &&
    files.every(isFile)
  )
}

function isFile(value: unknown): boolean {
  if (!isRecord(value)) return false
  const { name, events, bytes, contentBytes } = value
  const hasHashes = [value['sha256'], value['contentSha256']].every((hash) => matches(hash, HASH))
  return (
    matches(name, FILE_NAME) &&
    hasRange(value) &&
    [events, bytes, contentBytes].every(isCount) &&
    Number(events) <= MOST_EVENTS &&
    hasHashes
  )
}

function hasRange(value: Readonly<Record<string, unknown>>): boolean {
  return [value['firstPosition'], value['lastPosition']].every((position) => matches(position, POSITION))
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function matches(value: unknown, pattern: RegExp): boolean {
  return typeof value === 'string' && pattern.test(value)
}
