import type { Clock } from '../../runtime/clock.ts'
import { CommitpostError } from '../../runtime/errors.ts'
import { lsnOf, lsnText, type ReplicationClient, readLog } from '../../stream/postgres/replication.ts'
import type { LogGap, LogListener, LogSession, MissedEvents, OpenLog, StreamLease } from '../stream-store.ts'
import { type PgPool, rawQuery, withClient } from './client.ts'
import { openDirect, openReplication } from './direct-client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { openMissed } from './missed-events.ts'
import { assertPublished, streamUnavailable } from './publication.ts'
import {
  createSlot,
  dropUnusedSlot,
  freeSlot,
  isAdvanced,
  isForeignSlotSql,
  isLogOf,
  type SlotBeginning,
  serverIdentity,
  slotFacts,
} from './slot.ts'
import { slotNameSql } from './slot-name.ts'

const stateSql = (schema: QuotedSchema): string => `
  select t.slot, t.lsn, t.server, t.pass_snapshot, ${schema}.outbox_publication(),
         t.publication is not distinct from ${schema}.outbox_published_as(), t.gap
    from ${schema}.outbox_stream t where t.subscription_id = $1`

interface StreamState {
  readonly slot: string
  readonly lsn: bigint | null
  readonly server: string | null
  readonly passSnapshot: string | null
  readonly publication: string
  /** Whether it is what the log began with. */
  readonly isSamePublication: boolean
  /** Why it was last found to have lost something. */
  readonly gap: LogGap | null
}

// A slot that somebody else has is left alone, and the next one gets a name that nobody had.
const untrustedSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_stream t
     set slot = case when ${isForeignSlotSql('t.slot')}
                     then ${slotNameSql('$4', 't.subscription_id')} || '_' || t.epoch else t.slot end,
         lsn = null, gap = case when t.lsn is null and t.gap is not null then t.gap else nullif($3, 'new') end,
         gap_at = case when t.lsn is null and t.gap is not null then t.gap_at when $3 <> 'new' then clock_timestamp() end,
         updated_at = clock_timestamp()
   where t.subscription_id = $1 and t.epoch = $2
  returning 1`

// What the slot's own snapshot shows as ended may, for a moment, not have ended for others: a commit that waits for a
// standby. Whatever is visible there has to be visible to the statement that reads it.
const isReadableSql = `
  select pg_snapshot_xmax(pg_current_snapshot()) >= pg_snapshot_xmax($1::text::pg_snapshot)
     and not exists (select 1 from pg_snapshot_xip(pg_current_snapshot()) as running(xid)
                      where pg_visible_in_snapshot(running.xid, $1::text::pg_snapshot))`

const beginPassSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_stream t
     set pass_snapshot = coalesce($3::text::pg_snapshot, pg_current_snapshot()), pass_to = null,
         updated_at = clock_timestamp()
   where t.subscription_id = $1 and t.epoch = $2
  returning t.pass_snapshot`

const adoptSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_stream t set server = $3, updated_at = clock_timestamp()
   where t.subscription_id = $1 and t.epoch = $2`

const WAIT_MS = 50

/** One lease's connections to the log of a subscription. */
export class PostgresLogSession implements LogSession {
  readonly #pool: PgPool
  readonly #appPool: PgPool
  readonly #schema: QuotedSchema
  readonly #clock: Clock
  readonly #lease: StreamLease
  #client: ReplicationClient | null = null
  #open: OpenLog | null = null
  #beginning: (SlotBeginning & { readonly publication: string }) | null = null

  /** `appPool` is the pool whose settings the log's own connection has. */
  constructor(pool: PgPool, appPool: PgPool, schema: QuotedSchema, clock: Clock, lease: StreamLease) {
    this.#pool = pool
    this.#appPool = appPool
    this.#schema = schema
    this.#clock = clock
    this.#lease = lease
  }

  async gap(): Promise<LogGap | null> {
    const { slot, lsn, server, isSamePublication, gap } = await this.#state()
    // The last reader gave it up, or could not begin another.
    if (lsn === null) return gap ?? (server === null ? 'new' : 'slot-missing')
    const found = await withClient(this.#pool, (client) => slotFacts(client, slot))
    if (found === null) return 'slot-missing'
    if (!found.isOurs) return 'slot-replaced'
    if (found.isLost || found.confirmed === null) return 'slot-invalidated'
    const identity = await serverIdentity(await this.#connected())
    if (!isLogOf(identity, server, found)) return 'server-changed'
    if (isAdvanced(found, lsn)) return 'slot-advanced'
    if (!isSamePublication) return 'publication-changed'
    if (identity !== server) await this.#adopt(identity)
    return null
  }

  async missed(): Promise<MissedEvents> {
    const { passSnapshot } = await this.#state()
    const beginning = this.#beginning
    // What was begun is finished first, and by its own bound: that is where it was recorded how far it is.
    const upTo = passSnapshot ?? (await this.#beginPass(beginning?.snapshot ?? null))
    const isAtLog = beginning !== null && upTo === beginning.snapshot
    if (isAtLog) await this.#readable(upTo)
    const log = isAtLog ? { ...beginning, lsn: lsnText(beginning.lsn) } : null
    return openMissed(await openDirect(this.#appPool), this.#schema, this.#lease, { snapshot: upTo, log })
  }

  async beginLog(): Promise<void> {
    const { slot } = await this.#state()
    await withClient(this.#pool, (client) => assertPublished(client, this.#schema))
    const beginning = await createSlot(await this.#connected(), this.#schema, slot)
    if (beginning.publication === null) {
      throw streamUnavailable('stream-publication-lost', 'its publication was taken away meanwhile')
    }
    this.#beginning = { ...beginning, publication: beginning.publication }
  }

  async read(listener: LogListener): Promise<OpenLog | LogGap> {
    const { slot, lsn, publication } = await this.#state()
    if (lsn === null) throw new CommitpostError('INTERNAL', 'The log is read before it has begun.')
    await withClient(this.#pool, (client) => freeSlot(client, this.#schema, this.#lease))
    const request = { slot, publication, prefix: `commitpost.${slot}`, from: lsn }
    const log = await readLog(await this.#connected(), this.#clock, request, listener)
    this.#open = log
    // Nobody moves a slot that is read. Since it was looked at last somebody may have, and the server says nothing of it.
    const found = await withClient(this.#pool, (client) => slotFacts(client, slot))
    if (found !== null && isAdvanced(found, lsn)) return 'slot-advanced'
    log.listen()
    return log
  }

  async dropLog(why: LogGap): Promise<void> {
    await this.#closeLog()
    await withClient(this.#pool, async (client) => {
      const rows = await rawQuery(client, untrustedSql(this.#schema), [
        this.#lease.subscriptionId,
        this.#lease.epoch,
        why,
        this.#schema,
      ])
      if (rows.length === 0) throw new CommitpostError('LEASE_LOST', 'The log is read by another worker now.')
      await dropUnusedSlot(client, this.#schema, this.#lease)
    })
  }

  async close(): Promise<void> {
    const hasBegun = this.#beginning !== null
    // Before anything is asked that may be refused: a log that stays open is kept by the server, and keeps the process.
    await this.#closeLog()
    // Made, and perhaps not come to be relied on: nobody else would use it.
    if (hasBegun) await withClient(this.#pool, (client) => dropUnusedSlot(client, this.#schema, this.#lease))
  }

  async #closeLog(): Promise<void> {
    if (this.#open === null) await this.#client?.end()
    else await this.#open.close()
    this.#open = null
    this.#client = null
    this.#beginning = null
  }

  async #connected(): Promise<ReplicationClient> {
    this.#client ??= await openReplication(this.#appPool)
    return this.#client
  }

  /** From here on it is this server's slot. */
  async #adopt(server: string): Promise<void> {
    const values = [this.#lease.subscriptionId, this.#lease.epoch, server]
    await withClient(this.#pool, (client) => rawQuery(client, adoptSql(this.#schema), values))
  }

  async #state(): Promise<StreamState> {
    const [row] = await withClient(this.#pool, (client) =>
      rawQuery(client, stateSql(this.#schema), [this.#lease.subscriptionId]),
    )
    const [slot, lsn = null, server = null, passSnapshot = null, publication, isSame, gap = null] = row ?? []
    return {
      slot: slot as string,
      lsn: lsn === null ? null : lsnOf(lsn),
      server,
      passSnapshot,
      publication: publication as string,
      isSamePublication: isSame === 't',
      gap: gap as LogGap | null,
    }
  }

  async #beginPass(snapshot: string | null): Promise<string> {
    const values = [this.#lease.subscriptionId, this.#lease.epoch, snapshot]
    const [row] = await withClient(this.#pool, (client) =>
      rawQuery(client, beginPassSql(this.#schema), values),
    )
    if (row === undefined) throw new CommitpostError('LEASE_LOST', 'The log is read by another worker now.')
    return row[0] as string
  }

  async #readable(snapshot: string): Promise<void> {
    for (;;) {
      const [row] = await withClient(this.#pool, (client) => rawQuery(client, isReadableSql, [snapshot]))
      if (row?.[0] === 't') return
      if (this.#client === null) throw new CommitpostError('LEASE_LOST', 'The log was given up.')
      await this.#clock.sleep(WAIT_MS)
    }
  }
}
