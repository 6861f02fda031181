import type { ClaimedDelivery, DeliveryKey, Lease, Settled } from '../../delivery/delivery.ts'
import type { NewDeadLetter, SettleReport } from '../queue-store.ts'
import { type PgClient, type PgPool, withClient } from './client.ts'
import { endLeases } from './end-leases.ts'
import type { QuotedSchema } from './identifiers.ts'
import type { LeaseBook } from './lease-book.ts'
import { type DoneReport, settleDone } from './settle-done.ts'
import { type FailedReport, settleFailed } from './settle-failed.ts'

/**
 * Writes a batch down: one statement per claim for what is DONE, one per subscription for the rest. Each statement
 * stands for itself: if a later one fails, the earlier ones are written and the caller offers the batch again.
 * `locked` and `leases` are the caller's to keep: what was found locked once is not waited for again, and a lease ends with
 * the last of its deliveries.
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
  return withClient(pool, async (client) => {
    const report: MutableReport = { lost: [], dead: [], committed: [], busy: [] }
    for (const group of done) {
      const found = await settleClaim(client, schema, group, { locked, leases })
      add(report, group, { ...NOTHING_ELSE, ...found })
      await endEmptied(client, schema, group, leases, found)
    }
    for (const group of failed) {
      const found = await settleFailed(client, schema, group[0].delivery.subscriptionId, group)
      add(report, group, found)
      await endEmptied(client, schema, group, leases, found)
    }
    for (const { delivery } of report.busy) locked.add(delivery)
    return report
  })
}

interface MutableReport {
  readonly lost: DeliveryKey[]
  readonly dead: NewDeadLetter[]
  readonly committed: DeliveryKey[]
  readonly busy: Settled[]
}

/** What is DONE neither dies nor was committed by its handler. */
const NOTHING_ELSE: Pick<FailedReport, 'committed' | 'dead'> = { committed: new Set(), dead: [] }

function settleClaim(
  client: PgClient,
  schema: QuotedSchema,
  group: NonEmpty<Settled>,
  { locked, leases }: { readonly locked: WeakSet<ClaimedDelivery>; readonly leases: LeaseBook },
): Promise<DoneReport> {
  const { subscriptionId, lease } = group[0].delivery
  return settleDone(client, schema, {
    subscriptionId,
    token: lease.token,
    positions: group.map(({ delivery }) => delivery.position),
    areLast: leases.areLast(lease, group.length),
    wasLocked: group.some(({ delivery }) => locked.has(delivery)),
  })
}

/** Ends the leases of which nothing is left. Most end in the statement that settles their last. */
async function endEmptied(
  client: PgClient,
  schema: QuotedSchema,
  group: NonEmpty<Settled>,
  leases: LeaseBook,
  {
    settled,
    committed,
    leaseEnded = false,
  }: Partial<FailedReport> & Pick<DoneReport, 'settled'> & { leaseEnded?: boolean },
): Promise<void> {
  const counts = new Map<Lease, number>()
  for (const { delivery } of group) {
    if (!settled.has(delivery.position) && committed?.has(delivery.position) !== true) continue
    counts.set(delivery.lease, (counts.get(delivery.lease) ?? 0) + 1)
  }
  const emptied = [...counts].filter(([lease, count]) => leases.settled(lease, count))
  if (emptied.length === 0 || leaseEnded) return
  const tokens = emptied.map(([{ token }]) => token)
  await endLeases(client, schema, group[0].delivery.subscriptionId, tokens)
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
