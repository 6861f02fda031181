import { defaultOrderingKey, type EventHeaders, type NewEvent } from '../../event/event.ts'
import { CommitpostError, DuplicateEventError } from '../../runtime/errors.ts'
import { NoPartitionError } from '../../runtime/no-partition-error.ts'
import type { InsertOptions, OnDuplicate } from '../publish-store.ts'
import type { Transaction } from '../transaction.ts'
import { type TailStatement, tailOf } from '../transaction-tail.ts'
import { abortedTransaction } from './assert-in-transaction.ts'
import { type DriverError, driverErrorOf } from './driver-error.ts'
import { schemaMissing } from './explained.ts'
import type { QuotedSchema } from './identifiers.ts'

const NOT_UTF8 = 'this is not UTF-8'

// One event is what most transactions publish. Every value is sent as text and cast here: a client that is told of another
// type may make something else of it, as postgres.js, which encodes JSON a second time.
const callPublish = (schema: QuotedSchema): string =>
  `call ${schema}.outbox_publish('\u20ac', $1::text::uuid, $2::text, $3::text, $4::text::integer, $5::text, $6::text,
    $7::text, $8::text::bigint, $9::text::jsonb, $10::text::jsonb, $11::text::timestamptz)`

// Clients send UTF-8, whatever the session says of it: where a sign of three bytes arrives as three, so would all text.
// Only where it does is the other cast evaluated, which fails.
const FIRST_IF_UTF8 = `(case when length('\u20ac') = 1 then $1::text else '${NOT_UTF8}'::text::uuid::text end)`

const SEPARATOR = '\u001f'

const list = (parameter: string): string => `string_to_array(${parameter}, E'\\x1f')`

// A list for each column, as text, so that every client can send it, divided by a character that no event may hold and
// that JSON escapes: as JSON the server takes more than twice as long to read the same. One that is shorter than the
// ids goes on with nulls, and one that is longer makes an event without an id, which is refused. Positions follow their
// order. Neither RETURNING nor a conflict target: both need SELECT, and a publisher has no right but INSERT.
const insertEventsSql = (schema: QuotedSchema, onDuplicate: OnDuplicate): string => `
  insert into ${schema}.outbox_event (event_id, stream, event_type, schema_version, aggregate_type, aggregate_id,
         payload, ordering_key, sequence, headers, occurred_at)
  select e.id::uuid, e.stream, e.type, e.version::integer, e.aggregate, e.of, e.payload::jsonb,
         case when e.key <> '' then substr(e.key, 2) end, nullif(e.number, '')::bigint,
         coalesce(nullif(e.headers, '')::jsonb, '{}'), coalesce(nullif(e.at, '')::timestamptz, clock_timestamp())
    from unnest(${list(FIRST_IF_UTF8)}, ${[2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map((n) => list(`$${n}::text`)).join(', ')})
         as e(id, stream, type, version, aggregate, of, payload, key, number, headers, at)
  ${onDuplicate === 'ignore' ? 'on conflict do nothing' : ''}`

/** Writes events in the caller's transaction, in one statement unless they are very large. Positions follow the given order, see `inLockOrder`. */
export async function insertEvents(
  tx: Transaction,
  schema: QuotedSchema,
  events: readonly NewEvent[],
  { onDuplicate, mayBeKeptBack = false }: InsertOptions,
): Promise<{ readonly inserted: number }> {
  const explain = (error: unknown): unknown => publishErrorOf(error, events, schema)
  const tail = mayBeKeptBack && onDuplicate === 'error' ? tailOf(tx) : null
  let inserted = 0
  for (const portion of inPortions(inLockOrder(events))) {
    const statement = insertOf(schema, portion, onDuplicate)
    if (tail === null) inserted += await write(tx, statement, portion.length).catch(thrown(explain))
    else {
      await tail.hold({ ...statement, explain })
      inserted += portion.length
    }
  }
  return { inserted }
}

type Statement = Pick<TailStatement, 'text' | 'values'>

function insertOf(schema: QuotedSchema, events: readonly NewEvent[], onDuplicate: OnDuplicate): Statement {
  const [first] = events
  return first !== undefined && events.length === 1 && onDuplicate === 'error'
    ? { text: callPublish(schema), values: valuesOf(first) }
    : { text: insertEventsSql(schema, onDuplicate), values: listsOf(events) }
}

async function write(tx: Transaction, { text, values }: Statement, count: number): Promise<number> {
  const result = await tx.query(text, values)
  // A call tells no number, and a client of the caller's own may tell nothing.
  return result?.rowCount ?? count
}

const thrown =
  (explain: (error: unknown) => unknown) =>
  (error: unknown): never => {
    throw explain(error)
  }

/** So many characters of payloads go into one statement. A text of more than 512 million none can make, nor a server read. */
const MOST_CHARACTERS = 32 * 1_024 ** 2

/** Nearly always all of them. */
function inPortions(events: readonly NewEvent[]): readonly (readonly NewEvent[])[] {
  const portions: NewEvent[][] = []
  let characters = Number.POSITIVE_INFINITY
  for (const event of events) {
    characters += event.payloadJson.length
    if (characters > MOST_CHARACTERS) {
      portions.push([])
      characters = event.payloadJson.length
    }
    portions.at(-1)?.push(event)
  }
  return portions
}

/**
 * Numbering an event locks its key until the commit. Two batches that lock the same keys in another order each would
 * wait for each other for ever, so a batch with numbered events goes by key; within a key the given order stays.
 */
function inLockOrder(events: readonly NewEvent[]): readonly NewEvent[] {
  if (!events.some(({ sequenced }) => sequenced)) return events
  return events
    .map((event) => ({ event, key: keyOf(event) }))
    .toSorted((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)))
    .map(({ event }) => event)
}

function keyOf({ orderingKey, aggregateType, aggregateId }: NewEvent): string {
  return orderingKey ?? defaultOrderingKey(aggregateType, aggregateId)
}

function valuesOf(event: NewEvent): (string | null)[] {
  return [
    event.eventId,
    event.stream,
    event.type,
    String(event.schemaVersion),
    event.aggregateType,
    event.aggregateId,
    event.orderingKey,
    event.sequenced ? '1' : null,
    event.payloadJson,
    headersJson(event.headers),
    event.occurredAt?.toISOString() ?? null,
  ]
}

/** Null where there are none, as with most events. */
function headersJson(headers: EventHeaders): string | null {
  for (const _ in headers) return JSON.stringify(headers)
  return null
}

/** The values of each column, in the order of the statement. A column that no event has is empty. */
function listsOf(events: readonly NewEvent[]): string[] {
  const listOf = (value: (event: NewEvent) => string | number): string => events.map(value).join(SEPARATOR)
  const optional = (value: (event: NewEvent) => string): string =>
    events.some((event) => value(event) !== '') ? listOf(value) : ''
  return [
    listOf(({ eventId }) => eventId),
    listOf(({ stream }) => stream),
    listOf(({ type }) => type),
    listOf(({ schemaVersion }) => schemaVersion),
    listOf(({ aggregateType }) => aggregateType),
    listOf(({ aggregateId }) => aggregateId),
    listOf(({ payloadJson }) => payloadJson),
    optional(({ orderingKey }) => (orderingKey === null ? '' : `=${orderingKey}`)),
    // Any number asks for numbering: the database puts the right one in its place.
    optional(({ sequenced }) => (sequenced ? '1' : '')),
    optional(({ headers }) => headersJson(headers) ?? ''),
    optional(({ occurredAt }) => occurredAt?.toISOString() ?? ''),
  ]
}

/** What the caller can act on gets a name. All else, 40001 ("retry the transaction") included, stays as it is. */
function publishErrorOf(error: unknown, events: readonly NewEvent[], schema: QuotedSchema): unknown {
  const found = driverErrorOf(error)
  const named = found === null ? null : explanationOf(found, events, { cause: error })
  return named ?? schemaMissing(error, schema) ?? error
}

function explanationOf(
  found: DriverError,
  events: readonly NewEvent[],
  options: ErrorOptions,
): CommitpostError | null {
  const ids = namedIds(found.detail ?? found.message, events)
  if (found.code === '23505' && isPrimaryKey(found.constraint))
    return new DuplicateEventError(ids, { ...options, archived: found.constraint === ARCHIVED })
  if (isWithoutPartition(found)) return new NoPartitionError(ids, options)
  if (isOfAnotherEncoding(found)) return encodingMismatch(options)
  return found.code === '25P02' ? abortedTransaction('publish', options) : null
}

/** Some encodings read our text as other characters, and others not at all. */
function isOfAnotherEncoding({ code, message }: DriverError): boolean {
  if (code === '22P02') return message.includes(NOT_UTF8)
  return (code === '22021' || code === '22P05') && /encoding "(?!UTF8")/.test(message)
}

/** Only a row that has no partition is refused for no constraint at all; while tables are converted there is one. */
function isWithoutPartition({ code, constraint, message }: DriverError): boolean {
  if (code !== '23514') return false
  return constraint === null ? !/check constraint/i.test(message) : constraint === 'outbox_event_until'
}

function encodingMismatch(options: ErrorOptions): CommitpostError {
  return new CommitpostError(
    'INVALID_STATE',
    "Nothing was published: the client_encoding of this session is not 'UTF8', but what arrives is UTF-8, and every " +
      'text would be stored as other characters. Find who sets it, and leave it as the driver does.',
    options,
  )
}

/** What outbox_refuse_archived names. */
const ARCHIVED = 'outbox_event_archived_pkey'

function isPrimaryKey(constraint: string | null): boolean {
  return constraint === null || /^outbox_event.*_pkey$/.test(constraint)
}

/** The server names the id only to roles that may read it. Otherwise it is one of these. */
function namedIds(serverText: string, events: readonly NewEvent[]): readonly string[] {
  const ids = [...new Set(events.map(({ eventId }) => eventId))]
  const named = ids.filter((eventId) => serverText.includes(eventId))
  return named.length > 0 ? named : ids
}
