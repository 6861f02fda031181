import type { DeadLetterGroup, DeadLetterGroupQuery } from '../dead-letter-store.ts'
import { type PgPool, type RawRow, rawQuery, withClient } from './client.ts'
import { DEAD_LETTER_FILTER, FILTERS, filterValues } from './dead-letter-row.ts'
import type { QuotedSchema } from './identifiers.ts'
import { pageSize } from './page-size.ts'
import { dateOf, timeColumn } from './time-column.ts'

/** More names than a person reads in one row. */
const MOST_NAMES = 20

// In two steps, so that names are made distinct among a few rows and not among all. The first reads
// outbox_dead_letter_groups alone where open ones are asked for by subscription, type or not at all.
const groupSql = (schema: QuotedSchema): string => `
  with parts as materialized (
    select l.fingerprint, l.subscription, l.event_type, count(*) as letters, min(l.failed_at) as first_at,
           max(l.failed_at) as last_at, max(l.id) as newest
      from ${schema}.outbox_dead_letter l
     where ${DEAD_LETTER_FILTER}
     group by l.fingerprint, l.subscription, l.event_type
  ),
  groups as materialized (
    select p.fingerprint, sum(p.letters) as letters, min(p.first_at) as first_at, max(p.last_at) as last_at,
           max(p.newest) as newest,
           (array_agg(distinct p.subscription order by p.subscription))[1:${MOST_NAMES}] as subscriptions,
           (array_agg(distinct p.event_type order by p.event_type))[1:${MOST_NAMES}] as event_types
      from parts p
     group by p.fingerprint
     order by sum(p.letters) desc, max(p.newest) desc
     limit $${FILTERS + 1}
  )
  select g.fingerprint, l.error_code, ${schema}.outbox_error_pattern(l.error_message), g.letters,
         ${timeColumn('g.first_at')}, ${timeColumn('g.last_at')}, to_json(g.subscriptions), to_json(g.event_types),
         g.newest
    from groups g join ${schema}.outbox_dead_letter l on l.id = g.newest
   order by g.letters desc, g.newest desc`

/** Dead letters by what their errors have in common, the largest groups first. */
export async function groupDeadLetters(
  pool: PgPool,
  schema: QuotedSchema,
  query: DeadLetterGroupQuery,
): Promise<readonly DeadLetterGroup[]> {
  const values = [...filterValues(query), pageSize(query.limit)]
  const rows = await withClient(pool, (client) => rawQuery(client, groupSql(schema), values))
  return rows.map(toGroup)
}

function toGroup(row: RawRow): DeadLetterGroup {
  const text = (column: number): string => row[column] as string
  return {
    fingerprint: text(0),
    errorCode: text(1),
    pattern: text(2),
    count: Number(text(3)),
    firstFailedAt: dateOf(text(4)),
    lastFailedAt: dateOf(text(5)),
    subscriptions: JSON.parse(text(6)) as readonly string[],
    eventTypes: JSON.parse(text(7)) as readonly string[],
    sampleId: text(8),
  }
}
