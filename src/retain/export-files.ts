import { createHash, type Hash } from 'node:crypto'
import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { textProperty } from '../runtime/property.ts'
import type { ExportedEvent } from '../store/export-store.ts'
import { type ExportFile, PARTIAL } from './export-manifest.ts'

const CHUNK = 64 * 1024
/** Only its owner: what is exported may be nobody else's business. */
const OWNER_ONLY = 0o600

/** Counts and hashes what passes. */
export class Meter {
  bytes = 0
  readonly #hash: Hash = createHash('sha256')

  add(chunk: Buffer): void {
    this.bytes += chunk.length
    this.#hash.update(chunk)
  }

  /** The hash of all of it. To be asked once. */
  sha256(): string {
    return this.#hash.digest('hex')
  }
}

/** Events to be written, one looked at ahead: a file ends before the first that is not for it. */
export class EventCursor {
  readonly #events: AsyncIterator<ExportedEvent, void, undefined>
  #next: Promise<IteratorResult<ExportedEvent, void>> | null = null

  constructor(events: AsyncIterator<ExportedEvent, void, undefined>) {
    this.#events = events
  }

  async peek(): Promise<ExportedEvent | null> {
    this.#next ??= this.#events.next()
    const { done, value } = await this.#next
    return done === true ? null : value
  }

  /** The one that was looked at is done with. */
  take(): void {
    this.#next = null
  }
}

/** What is written, and by which rules. */
export interface FileRequest {
  readonly directory: string
  readonly name: string
  readonly mostEvents: number
  readonly signal: AbortSignal | undefined
  readonly line: (event: ExportedEvent) => string
  /** Told of every event that was written. */
  readonly onEvent: (event: ExportedEvent) => void
}

/** Writes the next events to one new file. It has its name once all of it is on disk. */
export async function writeExportFile(events: EventCursor, request: FileRequest): Promise<ExportFile> {
  const path = join(request.directory, request.name)
  const content = new Meter()
  const compressed = new Meter()
  const written = { events: 0, firstPosition: '0', lastPosition: '0' }
  const handle = await open(`${path}${PARTIAL}`, 'wx', OWNER_ONLY)
  let failure: unknown
  const keep = (error: unknown): void => {
    failure = error
  }
  try {
    await pipeline(
      () => keepingFailure(linesOf(events, request, written), keep),
      (chunks: AsyncIterable<Buffer>) => metered(chunks, content),
      createGzip(),
      (chunks: AsyncIterable<Buffer>) => metered(chunks, compressed),
      handle.createWriteStream({ flush: true }),
      { signal: request.signal },
    )
  } catch (error) {
    throw failure ?? error
  }
  await rename(`${path}${PARTIAL}`, path)
  return {
    name: request.name,
    ...written,
    bytes: compressed.bytes,
    sha256: compressed.sha256(),
    contentBytes: content.bytes,
    contentSha256: content.sha256(),
  }
}

/** Keeps what a source failed with: streams may say no more than that they were broken off. */
async function* keepingFailure<Item>(
  source: AsyncIterable<Item>,
  keep: (failure: unknown) => void,
): AsyncGenerator<Item, void, undefined> {
  try {
    yield* source
  } catch (error) {
    keep(error)
    throw error
  }
}

type Written = { -readonly [Name in 'events' | 'firstPosition' | 'lastPosition']: ExportFile[Name] }

async function* linesOf(
  events: EventCursor,
  { mostEvents, line, onEvent }: FileRequest,
  written: Written,
): AsyncGenerator<Buffer, void, undefined> {
  let text = ''
  for (let next = await events.peek(); next !== null; next = await events.peek()) {
    const { position } = next.event
    // Two at one position, the original and what took its place, stay together.
    if (written.events >= mostEvents && position !== written.lastPosition) break
    if (written.events === 0) written.firstPosition = position
    written.lastPosition = position
    written.events += 1
    text += line(next)
    onEvent(next)
    events.take()
    if (text.length >= CHUNK) {
      yield Buffer.from(text)
      text = ''
    }
  }
  if (text !== '') yield Buffer.from(text)
}

async function* metered(
  chunks: AsyncIterable<Buffer>,
  meter: Meter,
): AsyncGenerator<Buffer, void, undefined> {
  for await (const chunk of chunks) {
    meter.add(chunk)
    yield chunk
  }
}

/** Writes a small file whole, in the same way. */
export async function writeText(directory: string, name: string, text: string): Promise<void> {
  const path = join(directory, name)
  const handle = await open(`${path}${PARTIAL}`, 'wx', OWNER_ONLY)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(`${path}${PARTIAL}`, path)
}

/** Makes the names in a directory last: a file that is on disk may otherwise be lost with its name. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r')
  try {
    await handle.sync()
  } catch (error) {
    // Windows has no such thing, and needs none.
    if (textProperty(error, 'code') !== 'EPERM') throw error
  } finally {
    await handle.close()
  }
}
