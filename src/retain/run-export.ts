import { access, constants, mkdir, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Masking } from '../event/masking.ts'
import type { Clock } from '../runtime/clock.ts'
import { CommitpostError, NotFoundError } from '../runtime/errors.ts'
import { isOfFileSystem } from '../runtime/file-system.ts'
import { RefusedError } from '../runtime/refused-error.ts'
import type { ExportRecord, ExportStore, NewExport } from '../store/export-store.ts'
import type { ExportRequest } from './export-options.ts'
import { fileError } from './file-error.ts'
import { type ExportPlan, writeExport } from './write-export.ts'

/** What an export is made with. */
export interface ExportParts {
  readonly store: ExportStore
  readonly masking: Masking
  readonly clock: Clock
}

/** How often to ask whether old transactions have ended. */
const ASK_EVERY_MS = 50
const OWNER_ONLY = 0o700

/**
 * Writes what came after the last export of a stream to a new directory, and records it. Null where there was nothing.
 * Until it is recorded the next run begins at the same position, in a directory of its own.
 */
export async function runExport(parts: ExportParts, request: ExportRequest): Promise<ExportRecord | null> {
  const { store, clock } = parts
  await assertUsable(request.directory)
  const plan = await planOf(parts, request)
  if (plan === null) return null
  const { stream, operator, note } = request
  const { firstPosition, range } = plan
  const { lastPosition } = range
  const name = directoryName(stream, firstPosition, lastPosition, clock.now())
  const directory = join(resolve(request.directory), name)
  await makeDirectory(directory)
  const written = await orRemove(directory, () => writeExport(parts, plan, directory))
  return record(store, {
    stream,
    firstPosition,
    lastPosition,
    events: written.manifest.events,
    location: directory,
    manifestSha256: written.manifestSha256,
    masked: written.manifest.masking.masked,
    amended: written.amended,
    operator,
    note,
  })
}

async function planOf({ store, clock }: ExportParts, request: ExportRequest): Promise<ExportPlan | null> {
  const { stream, bound } = request
  const previous = await store.lastExport(stream)
  const firstPosition = previous === null ? '1' : String(BigInt(previous.lastPosition) + 1n)
  const decided = await decidedPosition(store, clock, request)
  const range = await store.exportRange(stream, firstPosition, decided, bound)
  const late = await store.lateItems(stream, firstPosition)
  const isEmpty = range.events === 0 && late.length === 0
  if (!isEmpty && BigInt(range.lastPosition) >= BigInt(firstPosition)) {
    return { request, previous, firstPosition, range: { ...range, events: range.events + late.length } }
  }
  if (await store.isKnownStream(stream)) return null
  throw new NotFoundError('stream', stream)
}

/** A position up to which nothing can appear any more. */
async function decidedPosition(
  store: ExportStore,
  clock: Clock,
  { waitMs, signal }: ExportRequest,
): Promise<string> {
  const barrier = await store.proposeBarrier()
  const deadline = clock.monotonicMs() + waitMs
  while (!(await store.isDecided(barrier))) {
    signal?.throwIfAborted()
    if (clock.monotonicMs() >= deadline) throw notDecided(waitMs)
    await clock.sleep(ASK_EVERY_MS, signal)
  }
  signal?.throwIfAborted()
  return barrier.position
}

function notDecided(waitMs: number): RefusedError {
  const message =
    `A transaction that was open before this export has not ended within ${waitMs} ms. As long as it is, nobody can ` +
    'tell whether it will publish events of this range, so nothing was exported. `commitpost doctor` names it.'
  return new RefusedError('transaction-open', message, { data: { waitMs: String(waitMs) } })
}

/** A new one for every export, so that no two are ever mixed: one that was broken off stays apart. */
function directoryName(stream: string, first: string, last: string, now: Date): string {
  const time = now.toISOString().replaceAll(/[-:.]/g, '')
  // A stream that was published by hand may have any name.
  const plain = stream.replaceAll(/[^A-Za-z0-9._-]/g, (letter) => `%${letter.codePointAt(0)?.toString(16)}`)
  return `${plain.replace(/^\./, '%2e').slice(0, LONGEST_NAME)}.${first}-${last}.${time}`
}

const LONGEST_NAME = 150

async function assertUsable(directory: string): Promise<void> {
  let isDirectory: boolean
  try {
    isDirectory = (await stat(directory)).isDirectory()
    await access(directory, constants.W_OK)
  } catch (error) {
    // Not made here: a path that is mistyped, or a disk that is not mounted, would be filled without anybody noticing.
    throw fileError('directory-unusable', directory, error)
  }
  if (!isDirectory) throw fileError('directory-is-file', directory, { code: 'ENOTDIR' })
}

async function makeDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { mode: OWNER_ONLY })
  } catch (error) {
    throw fileError('directory-not-made', directory, error)
  }
}

/** What was not finished is removed again: only a crash leaves it behind. */
async function orRemove<Result>(directory: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    await rm(directory, { recursive: true, force: true })
    throw isOfFileSystem(error) ? fileError('export-not-written', directory, error) : error
  }
}

async function record(store: ExportStore, exported: NewExport): Promise<ExportRecord> {
  try {
    return await store.recordExport(exported)
  } catch (error) {
    if (error instanceof CommitpostError && error.code === 'STORE_UNAVAILABLE') {
      throw unknownOutcome(exported.location, error)
    }
    // The database has refused it: there is no record, and never will be.
    await rm(exported.location, { recursive: true, force: true })
    throw error
  }
}

function unknownOutcome(location: string, cause: unknown): RefusedError {
  const message =
    `The export was written to ${location}, but the connection broke while it was being recorded, so nobody knows ` +
    'whether it is. `commitpost export verify` on that directory tells. If it is not, remove it: the next export ' +
    'begins at the same position.'
  return new RefusedError('export-unrecorded', message, { data: { path: location }, cause })
}
