import { lsnOf } from '../../stream/postgres/replication.ts'
import type { StreamBeat, StreamHeld, StreamLease, StreamProgress } from '../stream-store.ts'
import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { streamScope } from './stream-scope.ts'

// Whoever gave it back left no owner: one that is still named has vanished.
const takeSql = (schema: QuotedSchema): string => `
  with taken as (
    update ${schema}.outbox_stream t
       set owner = $2, until = clock_timestamp() + $3 * interval '1 millisecond', epoch = t.epoch + 1,
           crashes = t.crashes + case when t.owner is null then 0 else 1 end, updated_at = clock_timestamp()
     where t.subscription_id = $1 and t.until < clock_timestamp()
       and exists (select 1 from ${schema}.outbox_subscription s where s.id = $1 and s.state <> 'retired')
    returning t.*
  )
  select t.epoch, t.generation, t.parked_to, t.crashes, s.max_attempts, pg_current_wal_insert_lsn(),
         (select jsonb_agg(jsonb_build_object('streamLike', k.stream_like, 'eventTypes', k.event_types,
                   'startFrom', k.start_from, 'startAt', extract(epoch from k.start_at) * 1000,
                   'began', k.began_snapshot::text) order by k.id)
            from ${schema}.outbox_scope k where k.subscription_id = $1)
    from taken t join ${schema}.outbox_subscription s on s.id = t.subscription_id`

const heldSql = (schema: QuotedSchema): string => `
  select s.state = 'retired',
         case when t.until > clock_timestamp() then extract(epoch from t.until - clock_timestamp()) * 1000 else 0 end
    from ${schema}.outbox_subscription s join ${schema}.outbox_stream t on t.subscription_id = s.id where s.id = $1`

/** Takes the log of a subscription for so long, if nobody has it. */
export async function takeStream(
  client: PgClient,
  schema: QuotedSchema,
  subscriptionId: number,
  workerId: string,
  leaseMs: number,
): Promise<StreamLease | StreamHeld | 'retired'> {
  const [row] = await rawQuery(client, takeSql(schema), [subscriptionId, workerId, leaseMs])
  if (row === undefined) {
    const [held] = await rawQuery(client, heldSql(schema), [subscriptionId])
    return held?.[0] === 't' ? 'retired' : { heldForMs: Number(held?.[1] ?? leaseMs) }
  }
  return {
    subscriptionId,
    workerId,
    epoch: row[0] as string,
    generation: Number(row[1]),
    parkedTo: row[2] as string,
    crashes: Number(row[3]),
    maxAttempts: Number(row[4]),
    walAt: lsnOf(row[5] as string),
    scope: streamScope(row[6] as string),
  }
}

// The snapshot is taken before the message is written: whatever it shows as ended stands before the message in the log.
// The commit of this very statement sees to it that the message is flushed. Where that snapshot shows another publication
// than the log began with, none travels: what it shows as ended may not be in the log.
const beatSql = (schema: QuotedSchema): string => `
  with seen as materialized (
    select t.lsn is null or t.publication is not distinct from ${schema}.outbox_published_as() as published
      from ${schema}.outbox_stream t where t.subscription_id = $1
  ),
  beaten as (
    update ${schema}.outbox_stream t
       set until = clock_timestamp() + $3 * interval '1 millisecond', updated_at = clock_timestamp()
     where t.subscription_id = $1 and t.epoch = $2 and t.generation = $4
    returning t.slot
  ),
  told as materialized (
    select pg_logical_emit_message(false, ${markPrefix('b.slot')}, pg_current_snapshot()::text)
      from beaten b cross join seen n where n.published
  )
  select s.state <> 'retired', s.paused_at is not null,
         coalesce((select pg_wal_lsn_diff(pg_current_wal_lsn(), r.restart_lsn)
                     from pg_replication_slots r where r.slot_name = b.slot), 0),
         n.published, (select count(*) from told)
    from beaten b cross join seen n join ${schema}.outbox_subscription s on s.id = $1`

/** Under which messages of the log carry snapshots for the reader of a slot. */
export function markPrefix(slot: string): string {
  return `'commitpost.' || ${slot}`
}

/** Extends the lease, and lets a snapshot travel in the log. */
export async function beatStream(
  client: PgClient,
  schema: QuotedSchema,
  { subscriptionId, epoch, generation }: StreamLease,
  leaseMs: number,
): Promise<StreamBeat> {
  const [row] = await rawQuery(client, beatSql(schema), [subscriptionId, epoch, leaseMs, generation])
  if (row === undefined) return { held: false, paused: false, retainedBytes: 0, published: true }
  return {
    held: row[0] === 't',
    paused: row[1] === 't',
    retainedBytes: Number(row[2]),
    published: row[3] === 't',
  }
}

// The generation is compared in the row that is locked: one that waited for a widening sees it.
const recordSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_stream t
     set lsn = $4::text::pg_lsn, snapshot = coalesce($5::text::pg_snapshot, t.snapshot),
         crashes = case when $6 then 0 else t.crashes end, updated_at = clock_timestamp()
   where t.subscription_id = $1 and t.epoch = $2 and t.generation = $3 and t.lsn is not null
  returning 1`

/** Records how far the log was handled. False, with nothing written, where the lease is not what it was. */
export async function recordProgress(
  client: PgClient,
  schema: QuotedSchema,
  { subscriptionId, epoch, generation }: StreamLease,
  progress: Omit<StreamProgress, 'lsn'> & { readonly lsn: string },
): Promise<boolean> {
  const { lsn, snapshot, settled } = progress
  const values = [subscriptionId, epoch, generation, lsn, snapshot, settled]
  return (await rawQuery(client, recordSql(schema), values)).length > 0
}

const releaseSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_stream t
     set owner = null, until = '-infinity', crashes = 0, updated_at = clock_timestamp()
   where t.subscription_id = $1 and t.epoch = $2`

/** Gives the log back, so that another may have it at once. */
export async function releaseStream(
  client: PgClient,
  schema: QuotedSchema,
  { subscriptionId, epoch }: StreamLease,
): Promise<void> {
  await rawQuery(client, releaseSql(schema), [subscriptionId, epoch])
}
