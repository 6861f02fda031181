import type { MonitorTurn, TurnRequest } from '../alert-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { dateOf, timeColumn } from './time-column.ts'

// By the database's clock alone: the clocks of workers may differ by more than a turn lasts. Nobody waits for the row.
const takeTurnSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_monitor m
     set holder = $1, until = clock_timestamp() + $2 * interval '1 millisecond', epoch = m.epoch + 1
   where m.ctid = any (array(
     select o.ctid from ${schema}.outbox_monitor o
      where o.until <= clock_timestamp()
        and case when $4::boolean then o.round_at else o.looked_at end
            <= clock_timestamp() - $3 * interval '1 millisecond'
        for update skip locked))
  returning m.epoch, ${timeColumn('clock_timestamp()')}, ${timeColumn('m.report_at')}, m.rate_position,
            ${timeColumn('m.rate_at')},
            $4::boolean or m.round_at <= clock_timestamp() - $5 * interval '1 millisecond'`

/** Takes the turn to look and tell, unless somebody has it or has just looked. */
export async function takeMonitorTurn(
  pool: PgPool,
  schema: QuotedSchema,
  { holder, leaseMs, everyMs, whole, wholeEveryMs }: TurnRequest,
): Promise<MonitorTurn | null> {
  const values = [holder, leaseMs, everyMs, whole, wholeEveryMs]
  const [row] = await withClient(pool, (client) => rawQuery(client, takeTurnSql(schema), values))
  if (row === undefined) return null
  const [epoch, now, reportAt, position, rateAt, isWhole] = row
  return {
    holder,
    epoch: epoch as string,
    whole: isWhole === 't',
    now: dateOf(now as string),
    reportAt: dateOf(reportAt as string),
    rate:
      position === null || position === undefined
        ? null
        : { position: Number(position), at: dateOf(rateAt as string) },
  }
}
