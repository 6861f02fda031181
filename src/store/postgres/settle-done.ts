import { sqlState } from '../../runtime/sql-state.ts'
import { keptQuery, type PgClient, type RawRow, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { keptText } from './kept-text.ts'
import { tryLock } from './lane-sql.ts'

/** How long the results of a claim wait for a row that somebody else has locked: long enough for a heartbeat. */
const PATIENCE_MS = 250

const LOCK_NOT_AVAILABLE = '55P03'

// By primary key. The token is the guard: whoever lost the lease settles nothing.
const leased = `d.id = any ($3::bigint[]) and d.subscription_id = $1 and d.lease_token = $2`

const done = `status = 'DONE', processed_at = (select clock_timestamp()), updated_at = (select clock_timestamp()), suspect = false,
         locked_by = null, locked_until = null, lease_token = null`

// The time-out is set by the statement itself, for its own transaction: it costs no round trip and leaves nothing in a
// session that may be somebody else's next. Which were written is told only where not all of them were.
const settleDoneSql = keptText(
  (schema) => `
  with changed as (
    update ${schema}.outbox_delivery d
       set ${done}
     where ${leased} and (select set_config('lock_timeout', '${PATIENCE_MS}', true)) is not null
    returning d.id
  ),
  written as materialized (select count(*) as count from changed),
  ended as (
    delete from ${schema}.outbox_lease l
     where $4 and l.subscription_id = $1 and l.token = $2
       and (select count from written) = cardinality($3::bigint[])
  )
  select count from written
  union all
  select id from changed where (select count from written) < cardinality($3::bigint[])`,
)

// Row by row, past those that are locked. It costs more than the plain UPDATE, so it is for when that has waited.
const settleFreeSql = (schema: QuotedSchema): string => `
  with leased as materialized (
    select d.xmin as version, d.id from ${schema}.outbox_delivery d where ${leased}
  ),
  tried as materialized (${tryLock(schema, 'leased', '$1')}),
  changed as (
    update ${schema}.outbox_delivery d
       set ${done}
     where d.id = any (array(select id from tried where got)) and d.subscription_id = $1
    returning d.id
  )
  select id, false from changed
  union all
  select id, true from tried where not got`

/** Deliveries of one claim that are to be DONE. */
export interface DoneRequest {
  readonly subscriptionId: number
  readonly token: string
  readonly positions: readonly string[]
  /** True when these are all of the claim that are still in hand: with them its lease ends. */
  readonly areLast: boolean
  /** True when one of them was locked the last time: then nothing is waited for. */
  readonly wasLocked: boolean
}

/** What was written, by position: what was still leased under the token, and of that what is locked. */
export interface DoneReport {
  /** Null for all of them. */
  readonly settled: ReadonlySet<string> | null
  readonly busy: ReadonlySet<string>
  /** Whether the lease of their claim ended with them. */
  readonly leaseEnded: boolean
}

const NONE: ReadonlySet<string> = new Set()

/** Makes deliveries of one claim DONE, except those that somebody else has locked for more than a moment. */
export async function settleDone(
  client: PgClient,
  schema: QuotedSchema,
  request: DoneRequest,
): Promise<DoneReport> {
  if (request.wasLocked) return settleFree(client, schema, request)
  try {
    const values = [...valuesOf(request), request.areLast]
    const [count, ...rows] = await keptQuery(client, 'settle_done', settleDoneSql(schema), values)
    const all = Number(count?.[0]) === request.positions.length
    return { settled: all ? null : positionsOf(rows), busy: NONE, leaseEnded: all && request.areLast }
  } catch (error) {
    if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error
    return settleFree(client, schema, request)
  }
}

async function settleFree(client: PgClient, schema: QuotedSchema, request: DoneRequest): Promise<DoneReport> {
  const rows = await rawQuery(client, settleFreeSql(schema), valuesOf(request))
  const isBusy = ([, busy]: RawRow): boolean => busy === 't'
  return {
    settled: positionsOf(rows.filter((row) => !isBusy(row))),
    busy: positionsOf(rows.filter(isBusy)),
    leaseEnded: false,
  }
}

function valuesOf({ subscriptionId, token, positions }: DoneRequest): readonly unknown[] {
  // As the server reads it: a driver looks at every character of every element for what it would have to quote.
  return [subscriptionId, token, `{${positions.join(',')}}`]
}

function positionsOf(rows: readonly RawRow[]): ReadonlySet<string> {
  return new Set(rows.map(([position]) => position as string))
}
