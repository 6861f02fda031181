import type { Blocker, EventTrace, SubscriptionTrace, TracedEvent, TracedLetter } from '../event-trace.ts'
import { type PgClient, type PgPool, type RawRow, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { openTransaction } from './open-transaction.ts'
import { redriveAtOf, redriveColumn } from './redrive-at.ts'
import { dateOf, timeColumn } from './time-column.ts'
import { traceArchived } from './trace-archived.ts'
import { traceSubscriptionsSql } from './trace-subscriptions-sql.ts'
import { withSnapshot } from './with-snapshot.ts'

const eventSql = (schema: QuotedSchema): string => `
  select e.id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, ${timeColumn('e.created_at')},
         e.payload
    from ${schema}.outbox_event e where e.event_id = $1`

const MOST_LETTERS = 100

const lettersSql = (schema: QuotedSchema): string => `
  select l.subscription, l.id, ${timeColumn('l.failed_at')}, l.resolved, l.resolved_by, ${redriveColumn('l')}
    from ${schema}.outbox_dead_letter l where l.event_id = $1
   order by l.id desc limit ${MOST_LETTERS}`

/** What is known of an event and of its way to every subscription. Reads by indexes only. */
export async function traceEvent(pool: PgPool, schema: QuotedSchema, eventId: string): Promise<EventTrace> {
  const trace = await withSnapshot(pool, schema, async (client) => {
    const [event] = await rawQuery(client, eventSql(schema), [eventId])
    if (event === undefined) {
      const letters = await readLetters(client, schema, eventId)
      const archived = await traceArchived(client, schema, eventId)
      return { event: null, payload: null, subscriptions: [], archived, letters }
    }
    const rows = await rawQuery(client, traceSubscriptionsSql(schema), [eventId])
    const payload: unknown = JSON.parse(event[6] as string)
    const subscriptions = rows.map(toSubscriptionTrace)
    return { event: toEvent(event), payload, subscriptions, archived: null, letters: [] }
  })
  const isJoining = trace.subscriptions.some(({ state }) => state === 'joining')
  return { ...trace, waitsFor: isJoining ? await openTransaction(pool, schema) : null }
}

async function readLetters(
  client: PgClient,
  schema: QuotedSchema,
  eventId: string,
): Promise<EventTrace['letters']> {
  const rows = await rawQuery(client, lettersSql(schema), [eventId])
  return rows.map((row) => ({ subscription: row[0] as string, ...toLetter(row.slice(1)) }))
}

function toEvent(row: RawRow): TracedEvent {
  const [position, stream, eventType, aggregateType, aggregateId, createdAt] = row as readonly string[]
  return {
    position: position as string,
    stream: stream as string,
    eventType: eventType as string,
    aggregateType: aggregateType as string,
    aggregateId: aggregateId as string,
    createdAt: dateOf(createdAt as string),
  }
}

function toSubscriptionTrace(row: RawRow): SubscriptionTrace {
  const [delivery, behind, letter] = [row.slice(8, 20), row.slice(20, 23), row.slice(24, 29)]
  return {
    subscription: row[0] as string,
    state: row[1] as SubscriptionTrace['state'],
    isServed: row[2] === 't',
    pausedBy: row[3] ?? null,
    pausedAt: dateOrNull(row[4]),
    hasLiveWorker: row[5] === 't',
    matches: row[6] === 't',
    started: row[7] === 't',
    log: (row[29] ?? null) as SubscriptionTrace['log'],
    delivery: delivery[0] === null ? null : toDelivery(delivery),
    behind: behind[0] === null ? null : toBlocker(behind),
    replacedBy: row[23] ?? null,
    letter: letter[0] === null ? null : toLetter(letter),
  }
}

function toDelivery(row: RawRow): NonNullable<SubscriptionTrace['delivery']> {
  return {
    status: row[0] as NonNullable<SubscriptionTrace['delivery']>['status'],
    attempts: Number(row[1]),
    maxAttempts: Number(row[2]),
    suspect: row[3] === 't',
    nextRetryAt: dateOrNull(row[4]),
    isRetryAhead: row[5] === 't',
    lockedBy: row[6] ?? null,
    lockedUntil: dateOrNull(row[7]),
    isLapsed: row[8] === 't',
    errorCode: row[9] ?? null,
    errorMessage: row[10] ?? null,
    processedAt: dateOrNull(row[11]),
  }
}

function toBlocker(row: RawRow): Blocker {
  return {
    eventId: row[0] as string,
    status: row[1] as Blocker['status'],
    redriveAt: redriveAtOf(row[2]),
  }
}

function toLetter(row: RawRow): TracedLetter {
  return {
    id: row[0] as string,
    failedAt: dateOf(row[1] as string),
    resolved: row[2] === 't',
    resolvedBy: row[3] ?? null,
    redriveAt: redriveAtOf(row[4]),
  }
}

function dateOrNull(time: string | null | undefined): Date | null {
  return time === null || time === undefined ? null : dateOf(time)
}
