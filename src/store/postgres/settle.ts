import type { ClaimedDelivery, DeliveryKey, Settled } from '../../delivery/delivery.ts'
import type { NewDeadLetter, SettleReport } from '../queue-store.ts'
import { type PgClient, type PgPool, withClient } from './client.ts'
import { endLeases } from './end-leases.ts'
import type { QuotedSchema } from './identifiers.ts'
import type { LeaseBook } from './lease-book.ts'
import { readOver } from './read-over.ts'
import { type DoneReport, settleDone } from './settle-done.ts'
import { type FailedReport, settleFailed } from './settle-failed.ts'

/**
 * Writes a batch down: one statement per claim for what is DONE, one per subscription for the rest. Each statement
 * stands for itself: if a later one fails, the earlier ones are written and the caller offers the batch again.
 * `locked` and `leases` are the caller's to keep: what was found locked once is not waited for again, and a lease ends with
 * the last of its deliveries, mostly in the statement that settles it.
 */
export async function settle(
  pool: PgPool,
  schema: QuotedSchema,
  batch: readonly Settled[],
  locked: WeakSet<ClaimedDelivery>,
  leases: LeaseBook,
): Promise<SettleReport> {
  // In the order of the claims, whichever had a result first: if the worker is cut off between two statements, nothing of
  // a key may be DONE while something earlier of it is not, and comes again.
  const done = groupBy(batch.filter(isDone), ({ delivery }) => delivery.lease).toSorted(byToken)
  const failed = groupBy(
    batch.filter((settled) => !isDone(settled)),
    ({ delivery }) => delivery.subscriptionId,
  )
  const emptied: ClaimedDelivery[] = []
  const report = await withClient(pool, async (client) => {
    const written: MutableReport = { lost: [], dead: [], committed: [], busy: [] }
    const stopped = new Map<number, ReadonlySet<string>>()
    for (const group of done) {
      const [{ delivery }] = group
      const found = await settleClaim(client, schema, group, { locked, leases, stopped })
      const { settled, busy, leaseEnded } = found
      stopped.set(delivery.subscriptionId, found.stopped)
      if (settled !== null) add(written, group, { ...NOTHING_ELSE, settled, busy })
      if (leases.settled(delivery.lease, settled?.size ?? group.length) && !leaseEnded) emptied.push(delivery)
    }
    for (const group of failed) {
      const found = await settleFailed(client, schema, group[0].delivery.subscriptionId, group)
      add(written, group, found)
      emptied.push(...emptiedBy(group, found, leases))
    }
    return { ...written, over: await readOver(client, schema, written.lost) }
  })
  for (const { delivery } of report.busy) locked.add(delivery)
  // The results are written, whatever becomes of this: a lease of which nothing is left ends at the latest when it lapses.
  if (emptied.length > 0) await endLeases(pool, schema, emptied).catch(() => undefined)
  return report
}

interface MutableReport {
  readonly lost: DeliveryKey[]
  readonly dead: NewDeadLetter[]
  readonly committed: DeliveryKey[]
  readonly busy: Settled[]
}

/** What is DONE neither dies nor was committed by its handler. */
const NOTHING_ELSE: Pick<FailedReport, 'committed' | 'dead'> = { committed: new Set(), dead: [] }

interface SettleState {
  readonly locked: WeakSet<ClaimedDelivery>
  readonly leases: LeaseBook
  /** What of earlier claims of the batch stopped its key, by subscription. */
  readonly stopped: ReadonlyMap<number, ReadonlySet<string>>
}

function settleClaim(
  client: PgClient,
  schema: QuotedSchema,
  group: NonEmpty<Settled>,
  { locked, leases, stopped }: SettleState,
): Promise<DoneReport> {
  const { subscriptionId, lease } = group[0].delivery
  return settleDone(client, schema, {
    subscriptionId,
    token: lease.token,
    positions: group.map(({ delivery }) => delivery.position),
    areLast: leases.areLast(lease, group.length),
    wasLocked: group.some(({ delivery }) => locked.has(delivery)),
    stopped: [...(stopped.get(subscriptionId) ?? [])],
  })
}

/** One delivery of each claim of which nothing is left. A result may be offered twice, and counts once. */
function emptiedBy(
  group: readonly Settled[],
  { settled, committed }: FailedReport,
  leases: LeaseBook,
): readonly ClaimedDelivery[] {
  return group
    .map(({ delivery }) => delivery)
    .filter(({ position }) => settled.has(position) || committed.has(position))
    .filter((delivery) => leases.settledOne(delivery))
}

function add(report: MutableReport, group: readonly Settled[], found: FailedReport): void {
  const { settled, busy, committed, dead } = found
  report.dead.push(...dead)
  if (settled.size === group.length) return
  report.busy.push(...group.filter(({ delivery }) => busy.has(delivery.position)))
  report.committed.push(...keysOf(group, (position) => committed.has(position)))
  const isLost = (position: string): boolean =>
    !settled.has(position) && !busy.has(position) && !committed.has(position)
  report.lost.push(...keysOf(group, isLost))
}

function byToken([a]: NonEmpty<Settled>, [b]: NonEmpty<Settled>): number {
  return Number(BigInt(a.delivery.lease.token) - BigInt(b.delivery.lease.token))
}

type NonEmpty<Item> = readonly [Item, ...Item[]]

// Of what its handler completed the settlement only says what to do if that was rolled back.
const isDone = ({ settlement, completed }: Settled): boolean =>
  settlement.kind === 'done' && completed !== true

// By identity: the deliveries of one claim share their lease.
function groupBy(
  batch: readonly Settled[],
  keyOf: (settled: Settled) => unknown,
): readonly NonEmpty<Settled>[] {
  const groups = new Map<unknown, [Settled, ...Settled[]]>()
  for (const settled of batch) {
    const key = keyOf(settled)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [settled])
    else group.push(settled)
  }
  return [...groups.values()]
}

function keysOf(group: readonly Settled[], isMeant: (position: string) => boolean): readonly DeliveryKey[] {
  return group
    .filter(({ delivery }) => isMeant(delivery.position))
    .map(({ delivery: { subscriptionId, lane, position } }) => ({ subscriptionId, lane, position }))
}
