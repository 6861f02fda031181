import type { LoggedEvent, MissedEvents, StreamLease } from '../stream-store.ts'
import { BEGIN, type RawRow, rawQuery } from './client.ts'
import type { DirectClient } from './direct-client.ts'
import { EVENT_COLUMNS, toEvent } from './event-row.ts'
import { type QuotedSchema, quoteLiteral } from './identifiers.ts'

/** How far events are to be delivered from the table: those that had ended by the snapshot. */
export interface MissedUpTo {
  readonly snapshot: string
  /** Where the log begins, if that is where they end; null where they end at some moment. */
  readonly log: { readonly lsn: string; readonly server: string; readonly publication: string } | null
}

// Once for the whole stretch, and kept by the server in position order: no snapshot is held open meanwhile, and no page
// sorts what the page before has sorted. An id that this server has not come to is another's, from a restored backup:
// it cannot be in the log.
const cursorSql = (schema: QuotedSchema, subscriptionId: number, upTo: string): string => `
  declare commitpost_missed no scroll cursor with hold for
  select e.event_id
    from ${schema}.outbox_stream t
    join ${schema}.outbox_event e
      on e.xid >= pg_snapshot_xmin(t.snapshot) and not pg_visible_in_snapshot(e.xid, t.snapshot)
     and (pg_visible_in_snapshot(e.xid, ${quoteLiteral(upTo)}::pg_snapshot)
          or e.xid >= pg_snapshot_xmax(pg_current_snapshot()))
     and (t.pass_to is null or e.id > t.pass_to)
     and (t.start_at is null or e.created_at >= t.start_at
          or not exists (select 1 from ${schema}.outbox_subscription s
                          where s.id = t.subscription_id and pg_visible_in_snapshot(e.xid, s.joined_snapshot)))
   where t.subscription_id = ${subscriptionId}
     and not exists (select 1 from ${schema}.outbox_amendment a where a.event_id = e.event_id)
   order by e.id`

const PAGE = 1_000

const pageSql = (schema: QuotedSchema): string => `
  select e.id, e.xid, ${EVENT_COLUMNS} from ${schema}.outbox_event e where e.event_id = any ($1::uuid[]) order by e.id`

const reachedSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_stream t set pass_to = $4, updated_at = clock_timestamp()
   where t.subscription_id = $1 and t.epoch = $2 and t.generation = $3 and t.pass_snapshot is not null
  returning 1`

// Where the log begins and what was before it are recorded together: there is nothing between.
const finishedSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_stream t
     set snapshot = t.pass_snapshot, pass_snapshot = null, pass_to = null, start_at = null, crashes = 0,
         lsn = $4::text::pg_lsn, server = coalesce($5, t.server), publication = $6::text, updated_at = clock_timestamp()
   where t.subscription_id = $1 and t.epoch = $2 and t.generation = $3 and t.pass_snapshot is not null
  returning 1`

/** Opens the stretch of events from the recorded snapshot to this one, on a client of its own. */
export async function openMissed(
  client: DirectClient,
  schema: QuotedSchema,
  lease: StreamLease,
  upTo: MissedUpTo,
): Promise<MissedEvents> {
  await client.query(BEGIN)
  await client.query(cursorSql(schema, lease.subscriptionId, upTo.snapshot))
  await client.query('commit')
  const { subscriptionId, epoch, generation } = lease
  const write = async (text: string, more: readonly unknown[]): Promise<boolean> =>
    (await rawQuery(client, text, [subscriptionId, epoch, generation, ...more])).length > 0
  return {
    next: async () => {
      const ids = await rawQuery(client, `fetch ${PAGE} from commitpost_missed`, [])
      if (ids.length === 0) return []
      return (await rawQuery(client, pageSql(schema), [ids.map(([id]) => id)])).map(toLogged)
    },
    reached: (position) => write(reachedSql(schema), [position]),
    finished: () =>
      write(finishedSql(schema), [
        upTo.log?.lsn ?? null,
        upTo.log?.server ?? null,
        upTo.log?.publication ?? null,
      ]),
    reachesLog: upTo.log !== null,
    [Symbol.asyncDispose]: () => client.end(),
  }
}

/** For the objects of an event beside its text: about. */
const OVERHEAD_BYTES = 600

function toLogged(row: RawRow): LoggedEvent {
  const event = toEvent(row, 2, row[0] as string)
  return {
    eventId: event.eventId,
    position: event.position,
    xid: Number(row[1]),
    stream: event.stream,
    type: event.type,
    orderingKey: event.orderingKey,
    createdAt: event.createdAt,
    bytes: OVERHEAD_BYTES + (row[10]?.length ?? 0) * 2,
    // Those that stand in for others were left out.
    mayStandIn: false,
    event,
  }
}
