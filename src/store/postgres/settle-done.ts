import { sqlState } from '../../runtime/sql-state.ts'
import { keptQuery, type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { keptText } from './kept-text.ts'
import { tryLock } from './lane-sql.ts'

/** How long the results of a claim wait for a row that somebody else has locked: long enough for a heartbeat. */
const PATIENCE_MS = 250

const LOCK_NOT_AVAILABLE = '55P03'
const NOT_A_NUMBER = '22P02'

// By primary key. The token is the guard: whoever lost the lease settles nothing.
const leased = `d.id = any ($3::bigint[]) and d.subscription_id = $1 and d.lease_token = $2`

const done = `status = 'DONE', processed_at = (select clock_timestamp()), updated_at = (select clock_timestamp()), suspect = false,
         locked_by = null, locked_until = null, lease_token = null`

// The time-out is set by the statement itself, for its own transaction: it costs no round trip and leaves nothing in a
// session that may be somebody else's next. It writes all of them or fails, since what stands behind one that is not leased
// any more must not be DONE before it. SQL cannot raise an error; the text of a number that is none does.
const settleDoneSql = keptText(
  (schema) => `
  with changed as (
    update ${schema}.outbox_delivery d
       set ${done}
     where ${leased} and (select set_config('lock_timeout', '${PATIENCE_MS}', true)) is not null
    returning d.id
  ),
  ended as (
    delete from ${schema}.outbox_lease l where $4 and l.subscription_id = $1 and l.token = $2
  )
  select case when count(*) < cardinality($3::bigint[])
              then (count(*) || ' of ' || cardinality($3::bigint[]) || ' are leased: tried one by one')::bigint end
    from changed`,
)

// Row by row, past those that are locked or not leased. It costs more than the plain UPDATE, so it is for when that failed.
// Behind a row that stays as it is nothing of its key becomes DONE: if the worker is lost, that one comes again, and must
// not come alone. Without order there is no key, and nothing stands behind anything.
const settleFreeSql = (schema: QuotedSchema): string => `
  with leased as materialized (
    select d.xmin as version, d.id, d.ordering_key as key from ${schema}.outbox_delivery d where ${leased}
  ),
  tried as materialized (${tryLock(schema, 'leased', '$1')}),
  stopped as materialized (
    select t.id, t.key from tried t where not t.got
    union all
    select d.id, d.ordering_key from ${schema}.outbox_delivery d
     where d.id = any ($3::bigint[] || $4::bigint[]) and d.subscription_id = $1
       and d.lease_token is distinct from $2 and d.status not in ('DONE', 'DEAD')
  ),
  free as materialized (
    select t.id from tried t
     where t.got and (select s.id from stopped s where s.key = t.key and s.id < t.id limit 1) is null
  ),
  changed as (
    update ${schema}.outbox_delivery d
       set ${done}
     where d.id = any (array(select id from free)) and d.subscription_id = $1
    returning d.id
  )
  select id, 'settled' from changed
  union all
  select id, 'busy' from tried where id not in (select id from free)
  union all
  select id, 'stopped' from stopped where key is not null`

/** Deliveries of one claim that are to be DONE. */
export interface DoneRequest {
  readonly subscriptionId: number
  readonly token: string
  readonly positions: readonly string[]
  /** True when these are all of the claim that are still in hand: with them its lease ends. */
  readonly areLast: boolean
  /** True when one of them was locked the last time: then nothing is waited for. */
  readonly wasLocked: boolean
  /** What of earlier claims stopped its key, by position: nothing is written that stands behind one of these. */
  readonly stopped: readonly string[]
}

/** What was written, by position, and what is still leased under the token but is locked or stands behind one not written. */
export interface DoneReport {
  /** Null for all of them. */
  readonly settled: ReadonlySet<string> | null
  readonly busy: ReadonlySet<string>
  /** What is not over and stopped its key, of these and of those that had: nothing is written that stands behind one. */
  readonly stopped: ReadonlySet<string>
  /** Whether the lease of their claim ended with them. */
  readonly leaseEnded: boolean
}

const NONE: ReadonlySet<string> = new Set()

/** Makes deliveries of one claim DONE, except what is lost, or locked for more than a moment, and what follows such on its key. */
export async function settleDone(
  client: PgClient,
  schema: QuotedSchema,
  request: DoneRequest,
): Promise<DoneReport> {
  if (request.wasLocked || request.stopped.length > 0) return settleFree(client, schema, request)
  try {
    const values = [...valuesOf(request), request.areLast]
    await keptQuery(client, 'settle_done', settleDoneSql(schema), values)
    return { settled: null, busy: NONE, stopped: NONE, leaseEnded: request.areLast }
  } catch (error) {
    const state = sqlState(error)
    if (state !== LOCK_NOT_AVAILABLE && state !== NOT_A_NUMBER) throw error
    return settleFree(client, schema, request)
  }
}

async function settleFree(client: PgClient, schema: QuotedSchema, request: DoneRequest): Promise<DoneReport> {
  const rows = await rawQuery(client, settleFreeSql(schema), [...valuesOf(request), request.stopped])
  const positionsOf = (which: string): ReadonlySet<string> =>
    new Set(rows.filter(([, what]) => what === which).map(([position]) => position as string))
  return {
    settled: positionsOf('settled'),
    busy: positionsOf('busy'),
    stopped: positionsOf('stopped'),
    leaseEnded: false,
  }
}

function valuesOf({ subscriptionId, token, positions }: DoneRequest): readonly unknown[] {
  // As the server reads it: a driver looks at every character of every element for what it would have to quote.
  return [subscriptionId, token, `{${positions.join(',')}}`]
}
