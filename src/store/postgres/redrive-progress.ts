import { NotFoundError } from '../../runtime/errors.ts'
import type { OnItsWay, RedriveProgress, RedriveSkip, RedriveState } from '../redrive-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { rowId } from './row-id.ts'
import { dateOf, timeColumn } from './time-column.ts'

// Counters are kept in the plan's row: only why letters were passed over is counted here. Of those on their way any is as
// good as another, and the first that the index has costs nothing.
const progressSql = (schema: QuotedSchema): string => `
  select p.state, p.planned, p.driven, p.succeeded, p.died, p.blocked, p.skipped, p.applied_by,
         ${timeColumn('p.expires_at')},
         coalesce((select json_object_agg(r.reason, r.letters) from (
           select i.reason, count(*) as letters from ${schema}.outbox_redrive_item i
            where i.plan_id = p.id and i.state = 'skipped' group by i.reason) r), '{}'),
         (select json_build_object('subscription', s.name, 'eventId', i.event_id)
            from ${schema}.outbox_redrive_item i join ${schema}.outbox_subscription s on s.id = i.subscription_id
           where i.plan_id = p.id and i.state = 'driven' limit 1)
    from ${schema}.outbox_redrive_plan p where p.id = $1`

const NONE_SKIPPED: Readonly<Record<RedriveSkip, number>> = { resolved: 0, gone: 0, retired: 0, behind: 0 }

/** How far a plan is. */
export async function redriveProgress(
  pool: PgPool,
  schema: QuotedSchema,
  planId: string,
): Promise<RedriveProgress> {
  const id = rowId('plan', planId)
  const [row] = await withClient(pool, (client) => rawQuery(client, progressSql(schema), [id]))
  if (row === undefined) throw new NotFoundError('plan', planId)
  const [letters, driven, succeeded, failedAgain, blocked, skipped] = row.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  return {
    id: planId,
    state: row[0] as RedriveState,
    letters,
    waiting: letters - driven - skipped,
    driven,
    onTheirWay: driven - succeeded - failedAgain - blocked,
    oneOnItsWay: JSON.parse(row[10] ?? 'null') as OnItsWay | null,
    succeeded,
    failedAgain,
    blocked,
    skipped: { ...NONE_SKIPPED, ...(JSON.parse(row[9] as string) as Partial<Record<RedriveSkip, number>>) },
    appliedBy: row[7] ?? null,
    expiresAt: dateOf(row[8] as string),
  }
}
