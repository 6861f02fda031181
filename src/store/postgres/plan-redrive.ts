import type { RedriveCount, RedriveFilter, RedrivePlan } from '../redrive-store.ts'
import { type PgPool, type RawRow, rawQuery, withTransaction } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { redriveRefusal } from './redrive-refusal.ts'
import { dateOf, timeColumn } from './time-column.ts'

// Functions of the database, because operators use them from SQL too and need no right on the tables behind them.
const planSql = (schema: QuotedSchema): string => `select ${schema}.outbox_plan_redrive($1::text::jsonb)`

const MOST_KEYS = 50

// One statement for all counts: a kind, what is counted, its letters and how many of them come too late.
const countsSql = (schema: QuotedSchema): string => `
  with items as materialized (
    select s.name, i.event_type, i.ordering_key, i.reorders
      from ${schema}.outbox_redrive_item i join ${schema}.outbox_subscription s on s.id = i.subscription_id
     where i.plan_id = $1
  ),
  keys as materialized (
    select name, ordering_key, count(*) as letters, count(*) filter (where reorders) as reordered
      from items where ordering_key is not null group by name, ordering_key
  )
  select 'plan', '', '', p.planned, p.reordered, p.unreachable, ${timeColumn('p.expires_at')}
    from ${schema}.outbox_redrive_plan p where p.id = $1
  union all
  select 'keys', '', '', count(*), 0, 0, null from keys
  union all
  (select 'subscription', name, '', count(*), count(*) filter (where reorders), 0, null
     from items group by name order by name)
  union all
  (select 'type', event_type, '', count(*), count(*) filter (where reorders), 0, null
     from items group by event_type order by count(*) desc, event_type)
  union all
  (select 'key', name, ordering_key, letters, reordered, 0, null
     from keys order by reordered desc, letters desc, name, ordering_key limit ${MOST_KEYS})`

/** Stores which dead letters are to be re-driven, and tells what that would do. */
export async function planRedrive(
  pool: PgPool,
  schema: QuotedSchema,
  filter: RedriveFilter,
): Promise<RedrivePlan> {
  try {
    return await withTransaction(pool, async (client) => {
      const [planned] = await rawQuery(client, planSql(schema), [JSON.stringify(filter)])
      const id = planned?.[0] as string
      return toPlan(id, await rawQuery(client, countsSql(schema), [id]))
    })
  } catch (error) {
    throw redriveRefusal(error, null)
  }
}

function toPlan(id: string, rows: readonly RawRow[]): RedrivePlan {
  const of = (kind: string): readonly RawRow[] => rows.filter(([what]) => what === kind)
  const [plan] = of('plan')
  const [keys] = of('keys')
  return {
    id,
    ...countOf(plan as RawRow),
    unreachable: Number(plan?.[5]),
    subscriptions: of('subscription').map((row) => ({ subscription: row[1] as string, ...countOf(row) })),
    eventTypes: of('type').map((row) => ({ eventType: row[1] as string, ...countOf(row) })),
    keyCount: Number(keys?.[3]),
    keys: of('key').map((row) => ({
      subscription: row[1] as string,
      orderingKey: row[2] as string,
      ...countOf(row),
    })),
    expiresAt: dateOf(plan?.[6] as string),
  }
}

function countOf(row: RawRow): RedriveCount {
  return { letters: Number(row[3]), reordered: Number(row[4]) }
}
