import { defaultOrderingKey, type NewEvent } from '../../event/event.ts'
import { CommitpostError, DuplicateEventError } from '../../runtime/errors.ts'
import type { OnDuplicate } from '../publish-store.ts'
import type { Transaction } from '../transaction.ts'
import { abortedTransaction } from './assert-in-transaction.ts'
import { driverErrorOf } from './driver-error.ts'
import type { QuotedSchema } from './identifiers.ts'

// One parameter of text, so that every client can send it. Neither RETURNING nor a conflict target: both need SELECT,
// and a publisher has no right but INSERT. A JSON null becomes an SQL null here, hence the coalesce of the payload.
const insertEventsSql = (schema: QuotedSchema, onDuplicate: OnDuplicate): string => `
  insert into ${schema}.outbox_event (event_id, stream, event_type, schema_version, aggregate_type, aggregate_id,
         ordering_key, sequence, payload, headers, occurred_at)
  select e.event_id, e.stream, e.event_type, e.schema_version, e.aggregate_type, e.aggregate_id,
         e.ordering_key, e.sequence, coalesce(e.payload, 'null'), e.headers,
         coalesce(e.occurred_at, clock_timestamp())
    from jsonb_to_recordset($1::text::jsonb) as e(n integer, event_id uuid, stream text, event_type text,
         schema_version integer, aggregate_type text, aggregate_id text, ordering_key text, sequence bigint,
         payload jsonb, headers jsonb, occurred_at timestamptz)
   order by e.n
  ${onDuplicate === 'ignore' ? 'on conflict do nothing' : ''}`

/** Writes events in the caller's transaction, in one statement. Positions follow the given order, see `inLockOrder`. */
export async function insertEvents(
  tx: Transaction,
  schema: QuotedSchema,
  events: readonly NewEvent[],
  options: { readonly onDuplicate: OnDuplicate },
): Promise<{ readonly inserted: number }> {
  if (events.length === 0) return { inserted: 0 }
  const rows = inLockOrder(events).map(toJson)
  try {
    const result = await tx.query(insertEventsSql(schema, options.onDuplicate), [`[${rows.join(',')}]`])
    return { inserted: result.rowCount ?? events.length }
  } catch (error) {
    throw explained(error, events, schema)
  }
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

/** The payload is JSON text already: it is put in as it is, not parsed and written again. */
function toJson(event: NewEvent, n: number): string {
  const columns = JSON.stringify({
    n,
    event_id: event.eventId,
    stream: event.stream,
    event_type: event.type,
    schema_version: event.schemaVersion,
    aggregate_type: event.aggregateType,
    aggregate_id: event.aggregateId,
    ordering_key: event.orderingKey,
    // Any number asks for numbering: the database puts the right one in its place.
    sequence: event.sequenced ? 1 : null,
    headers: event.headers,
    occurred_at: event.occurredAt,
  })
  return `${columns.slice(0, -1)},"payload":${event.payloadJson}}`
}

/** What the caller can act on gets a name. All else, 40001 ("retry the transaction") included, stays as it is. */
function explained(error: unknown, events: readonly NewEvent[], schema: QuotedSchema): unknown {
  const found = driverErrorOf(error)
  if (found?.code === '23505' && isPrimaryKey(found.constraint)) {
    return new DuplicateEventError(duplicateIds(found.detail ?? found.message, events), { cause: error })
  }
  if (found?.code === '25P02') return abortedTransaction({ cause: error })
  if (found?.code === '42P01') {
    return new CommitpostError(
      'SCHEMA_MISSING',
      `Table ${schema}.outbox_event does not exist. Run \`commitpost migrate up\`, or name the right schema.`,
      { cause: error },
    )
  }
  return error
}

function isPrimaryKey(constraint: string | null): boolean {
  return constraint === null || /^outbox_event.*_pkey$/.test(constraint)
}

/** The server names the id only to roles that may read it. Otherwise it is one of these. */
function duplicateIds(serverText: string, events: readonly NewEvent[]): readonly string[] {
  const ids = [...new Set(events.map(({ eventId }) => eventId))]
  const named = ids.filter((eventId) => serverText.includes(eventId))
  return named.length > 0 ? named : ids
}
