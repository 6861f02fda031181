import type { AlarmState } from '../alert-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { dateOf, timeColumn } from './time-column.ts'

const alarmsSql = (schema: QuotedSchema): string => `
  select a.key, a.rule, ${timeColumn('a.since')}, a.told, ${timeColumn('a.told_at')}
    from ${schema}.outbox_alarm a order by a.key`

/** What is kept of every condition. */
export async function readAlarms(pool: PgPool, schema: QuotedSchema): Promise<readonly AlarmState[]> {
  const rows = await withClient(pool, (client) => rawQuery(client, alarmsSql(schema), []))
  const date = (text: string | null | undefined): Date | null =>
    text === null || text === undefined ? null : dateOf(text)
  return rows.map((row) => ({
    key: row[0] as string,
    rule: row[1] as string,
    since: date(row[2]),
    told: row[3] === 't',
    toldAt: date(row[4]),
  }))
}
