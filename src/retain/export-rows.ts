import type { Masking } from '../event/masking.ts'
import { shown } from '../runtime/option-checks.ts'
import { RefusedError } from '../runtime/refused-error.ts'
import type { ExportedEvent, ExportItem, ExportRange, ExportStore } from '../store/export-store.ts'
import type { ExportMasking } from './export-manifest.ts'

/**
 * Positions that are looked through at once. Large, because each look reads the newest pages of the table once more, of
 * which no index knows yet; what it finds is small, and read in smaller parts.
 */
const FEWEST_POSITIONS = 5_000n
const MOST_POSITIONS = 100_000n
const ENOUGH_ITEMS = 20_000

/** What is read at once: so many events, or so many bytes of payload, whichever comes first. */
const MOST_EVENTS = 500
const MOST_BYTES = 4 * 1024 * 1024

/** Which part of a stream is read. */
export interface RowsRequest {
  readonly stream: string
  readonly firstPosition: string
  readonly range: ExportRange
}

/** Everything that belongs into an export, in order of positions, with a bounded part of it in memory. */
export async function* exportRows(
  store: ExportStore,
  { stream, firstPosition, range }: RowsRequest,
): AsyncGenerator<ExportedEvent, void, undefined> {
  yield* readAll(store, await store.lateItems(stream, firstPosition))
  if (range.lowest === null || range.highest === null) return
  const highest = BigInt(range.highest)
  let window = FEWEST_POSITIONS
  for (let from = BigInt(range.lowest); from <= highest; ) {
    const to = smaller(from + window - 1n, highest)
    const items = await store.exportItems(stream, String(from), String(to))
    yield* readAll(store, items)
    if (items.length === 0 && to < highest) {
      const next = await store.nextPosition(String(to), range.highest)
      if (next === null) return
      from = BigInt(next)
    } else from = to + 1n
    if (items.length < ENOUGH_ITEMS) window = smaller(window * 2n, MOST_POSITIONS)
  }
}

async function* readAll(
  store: ExportStore,
  items: readonly ExportItem[],
): AsyncGenerator<ExportedEvent, void, undefined> {
  for (const batch of batchesOf(items)) {
    const read = await store.readExported(batch)
    if (read.length !== batch.length) throw removedMeanwhile(batch.length - read.length)
    yield* read
  }
}

function* batchesOf(items: readonly ExportItem[]): Generator<readonly string[], void, undefined> {
  let batch: string[] = []
  let bytes = 0
  for (const item of items) {
    if (batch.length === MOST_EVENTS || (batch.length > 0 && bytes + item.bytes > MOST_BYTES)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(item.eventId)
    bytes += item.bytes
  }
  if (batch.length > 0) yield batch
}

function smaller(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

function removedMeanwhile(count: number): RefusedError {
  const message =
    `${count} event(s) of the stream were removed while they were being exported, so nothing was recorded. Let ` +
    'retention wait for exports of this stream, and start again.'
  return new RefusedError('removed-meanwhile', message, { data: { events: String(count) } })
}

/** Turns events into lines of NDJSON, and remembers what of them was masked. */
export class RowWriter {
  readonly #masking: Masking | null
  readonly #hidden = new Map<string, readonly string[]>()

  /** Without a masking everything is written. */
  constructor(masking: Masking | null) {
    this.#masking = masking?.keeps('export') === true ? null : masking
  }

  /** One event as one line, with everything the database has of it. */
  line(exported: ExportedEvent): string {
    const { event, deliveries, amendedFrom, headersJson } = exported
    const { payload: _payload, headers: _headers, type, ...rest } = event
    const known = JSON.stringify({
      ...rest,
      type,
      deliveries,
      ...(amendedFrom === null ? {} : { amendedFrom }),
    })
    // As the database has them, not as JavaScript would write them again: it has no room for large numbers.
    return `${known.slice(0, -1)},"headers":${headersJson},"payload":${this.#payload(exported)}}\n`
  }

  /** What was masked so far. */
  get masked(): ExportMasking {
    const fields = [...this.#hidden]
      .filter(([, paths]) => paths.length > 0)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
    return { masked: this.#masking !== null, fields: Object.fromEntries(fields) }
  }

  #payload({ event, payloadJson }: ExportedEvent): string {
    if (this.#masking === null) return payloadJson
    const paths = this.#hidden.get(event.type) ?? this.#masking.hidden(event.type, 'export')
    // Masked whole it would be in the export and yet lost: once that is verified, retention may remove the event.
    if (paths === null) throw unknownType(event)
    this.#hidden.set(event.type, paths)
    return paths.length === 0 ? payloadJson : JSON.stringify(this.#masking.payload(event, 'export'))
  }
}

function unknownType({ type, eventId }: ExportedEvent['event']): RefusedError {
  const message =
    `Event ${eventId} is of type ${shown(type)}, which is not in the catalogue, so nobody can tell what in its payload ` +
    'is sensitive. Nothing was exported. Add the type to the catalogue, or reveal everything.'
  return new RefusedError('type-not-in-catalogue', message, { data: { event: eventId, type } })
}
