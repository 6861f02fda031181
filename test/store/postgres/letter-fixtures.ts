import { one, type Queryable } from './fixtures.ts'

/** A dead letter as it stands in the table; what is left out has a default. */
export interface LetterRow {
  readonly subscription?: string
  readonly stream?: string
  readonly eventType?: string
  readonly aggregateType?: string
  readonly aggregateId?: string
  readonly code?: string
  readonly message?: string
  readonly failedAt?: string
  /** How many days ago it was resolved; left out where it is open. */
  readonly resolvedDaysAgo?: number
}

/** Writes a dead letter as a settling worker would, without its delivery. Returns its id. */
export function insertLetter(client: Queryable, letter: LetterRow = {}): Promise<string> {
  const resolvedAt = `now() - $9::float8 * interval '1 day'`
  return one(
    client,
    `insert into outbox_dead_letter (subscription, position, event_id, stream, event_type, schema_version,
            aggregate_type, aggregate_id, payload, headers, occurred_at, error_code, error_message, retry_count,
            failed_at, resolved, resolved_at, resolved_by)
     values ($1, 1, gen_random_uuid(), $2, $3, 1, $4, $5, '{}', '{}', now(), $6, $7, 0, $8,
            $9::float8 is not null, ${resolvedAt}, case when $9::float8 is not null then 'kim' end)
     returning id`,
    [
      letter.subscription ?? 'sub',
      letter.stream ?? 'shop.order',
      letter.eventType ?? 'OrderPlaced',
      letter.aggregateType ?? 'order',
      letter.aggregateId ?? '1',
      letter.code ?? 'BOOM',
      letter.message ?? 'it failed',
      letter.failedAt ?? '2026-01-02T03:04:05Z',
      letter.resolvedDaysAgo ?? null,
    ],
  )
}

/**
 * Many open dead letters with payloads, of ten subscriptions, 50 types and 20 errors, and the statistics that a table
 * of this size has in production.
 */
export async function insertManyLetters(client: Queryable, count: number): Promise<void> {
  await client.query(
    `insert into outbox_dead_letter (subscription, position, event_id, stream, event_type, schema_version,
            aggregate_type, aggregate_id, payload, headers, occurred_at, error_code, error_message, retry_count, failed_at)
     select 'sub' || n % 10, n, gen_random_uuid(), 'stream' || n % 7, 'Type' || n % 50, 1, 'order', n::text,
            jsonb_build_object('text', (select string_agg(md5(n::text || k), '') from generate_series(1, 30) k)),
            '{}', now(), 'E' || n % 20, 'order ' || n || ' of ' || md5(n::text) || ' failed', 0,
            '2026-01-01'::timestamptz + n * interval '1 second'
       from generate_series(1, $1::int) n`,
    [count],
  )
  await client.query('vacuum analyze outbox_dead_letter')
}
