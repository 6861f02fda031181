import { RefusedError } from '../../runtime/refused-error.ts'
import { lsnOf, type ReplicationClient } from '../../stream/postgres/replication.ts'
import type { StreamLease } from '../stream-store.ts'
import { type PgClient, rawQuery } from './client.ts'
import { driverErrorOf } from './driver-error.ts'
import type { QuotedSchema } from './identifiers.ts'
import { streamUnavailable } from './publication.ts'

/** What the server says of a slot. */
export interface SlotFacts {
  readonly confirmed: bigint | null
  readonly isLost: boolean
  readonly isOurs: boolean
  /** Whether it was kept in step with that of a primary by the server itself, before this one was promoted. */
  readonly isSynced: boolean
  readonly activePid: string | null
}

// Names are of the whole server. A copy of the database knows its original's slot by name, and that one is in use.
const IS_OURS = `(r.plugin = 'pgoutput' and r.database = current_database())`

/** Whether a slot of this name, an expression of SQL, is somebody else's. */
export function isForeignSlotSql(slot: string): string {
  return `exists (select 1 from pg_replication_slots r where r.slot_name = ${slot} and ${IS_OURS} is not true)`
}

// Before PostgreSQL 17 no slot is synchronised, and there is no such column.
const factsSql = `
  select r.confirmed_flush_lsn, r.wal_status = 'lost' or r.restart_lsn is null, ${IS_OURS},
         to_jsonb(r) ->> 'synced', r.active_pid
    from pg_replication_slots r where r.slot_name = $1`

/** How a slot stands; null where there is none. */
export async function slotFacts(client: PgClient, slot: string): Promise<SlotFacts | null> {
  const [row] = await rawQuery(client, factsSql, [slot])
  if (row === undefined) return null
  const [confirmed = null, lost, ours, synced, activePid = null] = row
  return {
    confirmed: confirmed === null ? null : lsnOf(confirmed),
    isLost: lost === 't',
    isOurs: ours === 't',
    isSynced: synced === 'true',
    activePid,
  }
}

/** Whether somebody moved it: it is further than was recorded, which is before anything is confirmed. */
export function isAdvanced({ confirmed }: SlotFacts, lsn: bigint): boolean {
  return confirmed !== null && confirmed > lsn
}

/** Which slot is meant: an expression of SQL, and its values. */
interface Meant {
  readonly sql: string
  readonly values: readonly unknown[]
}

/** The slot of a log, for as long as the lease is what it was: the next holder's has the same name. */
function ownSlot(schema: QuotedSchema, { subscriptionId, epoch }: StreamLease, more = ''): Meant {
  const sql = `(select t.slot from ${schema}.outbox_stream t where t.subscription_id = $1 and t.epoch = $2 ${more})`
  return { sql, values: [subscriptionId, epoch] }
}

const dropSql = (slot: string): string => `
  select pg_drop_replication_slot(r.slot_name) from pg_replication_slots r where r.slot_name = ${slot} and ${IS_OURS}`

/** Removes a slot of ours, from under whoever reads it: nobody is to read it any more. */
export async function dropSlot(client: PgClient, slot: string): Promise<void> {
  const meant = { sql: '$1', values: [slot] }
  await free(client, meant)
  await rawQuery(client, dropSql(meant.sql), meant.values)
}

/** Removes the slot of a log that nothing relies on, if the lease is what it was. Until it is gone nobody takes the log. */
export async function dropUnusedSlot(
  client: PgClient,
  schema: QuotedSchema,
  lease: StreamLease,
): Promise<void> {
  await free(client, ownSlot(schema, lease, 'and t.lsn is null'))
  const { sql, values } = ownSlot(schema, lease, 'and t.lsn is null for update')
  await rawQuery(client, dropSql(sql), values)
}

const terminateSql = (slot: string): string => `
  select r.slot_name, pg_terminate_backend(r.active_pid, 5000) from pg_replication_slots r
   where r.slot_name = ${slot} and ${IS_OURS} and r.active_pid is not null`

const MOST_LOOKS = 4

/**
 * Ends the connection of an earlier reader that does not know that it was replaced: a process that is paused, say. One that
 * was replaced itself ends nobody's.
 */
export async function freeSlot(client: PgClient, schema: QuotedSchema, lease: StreamLease): Promise<void> {
  await free(client, ownSlot(schema, lease))
}

async function free(client: PgClient, { sql, values }: Meant): Promise<void> {
  let slot = ''
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const [active] = await rawQuery(client, terminateSql(sql), values)
    if (active === undefined) return
    slot = active[0] as string
  }
  throw new RefusedError(
    'stream-slot-in-use',
    `Replication slot "${slot}" is in use by another connection that does not end. See pg_replication_slots.active_pid.`,
    { data: { slot } },
  )
}

/** Where a new slot begins: everything that had ended by the snapshot stands before it, everything else comes in the log. */
export interface SlotBeginning {
  readonly snapshot: string
  readonly lsn: bigint
  readonly server: string
  /** What makes events appear in the log, as the snapshot shows it; null where not all of them do. */
  readonly publication: string | null
}

/** The SQLSTATE of a limit of the server's configuration. */
const NO_FREE_SLOT = '53400'
const WITH_OPTIONS = 150_000
const WITH_FAILOVER = 170_000

/** Makes a slot. Takes as long as the longest transaction that is under way on the whole server. */
export async function createSlot(
  client: ReplicationClient,
  schema: QuotedSchema,
  slot: string,
): Promise<SlotBeginning> {
  const server = await serverIdentity(client)
  const version = Number((await client.query('show server_version_num')).rows[0]?.['server_version_num'])
  await client.query('begin isolation level repeatable read read only')
  try {
    const { rows } = await client.query(
      `CREATE_REPLICATION_SLOT "${slot}" LOGICAL pgoutput ${slotOptions(version)}`,
    )
    const seen = await client.query(
      `select pg_current_snapshot()::text as snapshot, ${schema}.outbox_published_as() as publication`,
    )
    await client.query('commit')
    return {
      snapshot: String(seen.rows[0]?.['snapshot']),
      publication: (seen.rows[0]?.['publication'] ?? null) as string | null,
      lsn: lsnOf(String(rows[0]?.['consistent_point'])),
      server,
    }
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw driverErrorOf(error)?.code === NO_FREE_SLOT ? noFreeSlot(error) : error
  }
}

function noFreeSlot(cause: unknown): RefusedError {
  return streamUnavailable(
    'stream-without-slot',
    'all replication slots of the server are in use. Remove those that nobody reads (select slot_name from ' +
      'pg_replication_slots where not active), or set it higher and restart the server: ' +
      'alter system set max_replication_slots = 20',
    { cause },
  )
}

/** A slot with `failover` is kept on standbys too, from PostgreSQL 17 on. */
function slotOptions(version: number): string {
  if (version < WITH_OPTIONS) return 'USE_SNAPSHOT'
  return version < WITH_FAILOVER ? "(SNAPSHOT 'use')" : "(SNAPSHOT 'use', FAILOVER true)"
}

/** The server and the timeline it is on: a place in the log means nothing on another server. */
export async function serverIdentity(client: ReplicationClient): Promise<string> {
  const { rows } = await client.query('IDENTIFY_SYSTEM')
  return `${String(rows[0]?.['systemid'])}/${String(rows[0]?.['timeline'])}`
}

/**
 * Whether a place that was recorded on one server means the same on this one: it is the same, or a standby of it that was
 * promoted and has the slot by synchronising it. The record came there by the log itself, so the log had come at least as
 * far when the timelines parted. A copy of such a server's files has the mark too: nothing tells it apart.
 */
export function isLogOf(server: string, recorded: string | null, { isSynced }: SlotFacts): boolean {
  if (server === recorded) return true
  return isSynced && recorded !== null && server.split('/')[0] === recorded.split('/')[0]
}
