import { defaultOrderingKey, type NewEvent } from '../../event/event.ts'
import { CommitpostError, DuplicateEventError } from '../../runtime/errors.ts'
import { NoPartitionError } from '../../runtime/no-partition-error.ts'
import type { OnDuplicate } from '../publish-store.ts'
import type { Transaction } from '../transaction.ts'
import { abortedTransaction } from './assert-in-transaction.ts'
import { type DriverError, driverErrorOf } from './driver-error.ts'
import { schemaMissing } from './explained.ts'
import type { QuotedSchema } from './identifiers.ts'

const NOT_UTF8 = 'this is not UTF-8'

const COLUMNS = `event_id, stream, event_type, schema_version, aggregate_type, aggregate_id, ordering_key, sequence,
         payload, headers, occurred_at`

// Clients send UTF-8, whatever the session says of it: where a sign of three bytes arrives as three, so would all text.
// Only where it does is the other cast evaluated, which fails.
const FIRST_IF_UTF8 = `(case when length('\u20ac') = 1 then $1::text else '${NOT_UTF8}'::text::uuid::text end)`

const onConflict = (onDuplicate: OnDuplicate): string =>
  onDuplicate === 'ignore' ? 'on conflict do nothing' : ''

// For one event, which is what most transactions publish: a list of one would take a third longer.
const insertEventSql = (schema: QuotedSchema, onDuplicate: OnDuplicate): string => `
  insert into ${schema}.outbox_event (${COLUMNS})
  values (${FIRST_IF_UTF8}::uuid, $2::text, $3::text, $4::integer, $5::text, $6::text, $7::text, $8::bigint, $9::jsonb,
         $10::jsonb, coalesce($11::timestamptz, clock_timestamp()))
  ${onConflict(onDuplicate)}`

// One parameter of text, so that every client can send it, and JSON: as arrays of columns the same takes the server twice
// as long to read, and the client to write. Positions follow its order. Neither RETURNING nor a conflict target: both need
// SELECT, and a publisher has no right but INSERT.
const insertEventsSql = (schema: QuotedSchema, onDuplicate: OnDuplicate): string => `
  insert into ${schema}.outbox_event (${COLUMNS})
  select e.id, e.stream, e.type, e.version, e.aggregate, e.of, e.key, e.number, coalesce(e.payload, 'null'),
         coalesce(e.headers, '{}'), coalesce(e.at, clock_timestamp())
    from json_to_recordset(${FIRST_IF_UTF8}::json) as e(
         id uuid, stream text, type text, version integer, aggregate text, of text, key text, number bigint,
         payload jsonb, headers jsonb, at timestamptz)
  ${onConflict(onDuplicate)}`

/** Writes events in the caller's transaction, in one statement. Positions follow the given order, see `inLockOrder`. */
export async function insertEvents(
  tx: Transaction,
  schema: QuotedSchema,
  events: readonly NewEvent[],
  options: { readonly onDuplicate: OnDuplicate },
): Promise<{ readonly inserted: number }> {
  const [first] = events
  if (first === undefined) return { inserted: 0 }
  try {
    const result =
      events.length === 1
        ? await tx.query(insertEventSql(schema, options.onDuplicate), valuesOf(first))
        : await insertMany(tx, schema, events, options.onDuplicate)
    // A client of the caller's own may tell nothing.
    return { inserted: result?.rowCount ?? events.length }
  } catch (error) {
    throw explained(error, events, schema)
  }
}

function insertMany(
  tx: Transaction,
  schema: QuotedSchema,
  events: readonly NewEvent[],
  onDuplicate: OnDuplicate,
): ReturnType<Transaction['query']> {
  return tx.query(insertEventsSql(schema, onDuplicate), [jsonOf(inLockOrder(events))])
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
    JSON.stringify(event.headers),
    event.occurredAt?.toISOString() ?? null,
  ]
}

/** As JSON, by hand: payloads are JSON already, and most of what is optional is not there. */
function jsonOf(events: readonly NewEvent[]): string {
  let json = ''
  for (const event of events) {
    json += `${json === '' ? '[' : ','}{"id":${text(event.eventId)},"stream":${text(event.stream)},"type":${text(event.type)}`
    json += `,"version":${event.schemaVersion},"aggregate":${text(event.aggregateType)},"of":${text(event.aggregateId)}`
    json += `,"payload":${event.payloadJson}${optionalOf(event)}}`
  }
  return `${json}]`
}

const text: (value: unknown) => string = JSON.stringify

/** Any number as the sequence asks for numbering: the database puts the right one in its place. */
function optionalOf({ orderingKey, sequenced, headers, occurredAt }: NewEvent): string {
  const key = orderingKey === null ? '' : `,"key":${text(orderingKey)}`
  const number = sequenced ? ',"number":1' : ''
  const at = occurredAt === null ? '' : `,"at":"${occurredAt.toISOString()}"`
  const json = text(headers)
  return `${key}${number}${at}${json === '{}' ? '' : `,"headers":${json}`}`
}

/** What the caller can act on gets a name. All else, 40001 ("retry the transaction") included, stays as it is. */
function explained(error: unknown, events: readonly NewEvent[], schema: QuotedSchema): unknown {
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
  if (found.code === '23505' && isPrimaryKey(found.constraint)) return new DuplicateEventError(ids, options)
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

function isPrimaryKey(constraint: string | null): boolean {
  return constraint === null || /^outbox_event.*_pkey$/.test(constraint)
}

/** The server names the id only to roles that may read it. Otherwise it is one of these. */
function namedIds(serverText: string, events: readonly NewEvent[]): readonly string[] {
  const ids = [...new Set(events.map(({ eventId }) => eventId))]
  const named = ids.filter((eventId) => serverText.includes(eventId))
  return named.length > 0 ? named : ids
}
