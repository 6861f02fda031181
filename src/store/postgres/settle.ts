import type { DeliveryKey, Settled } from '../../delivery/delivery.ts'
import type { NewDeadLetter, SettleReport } from '../queue-store.ts'
import { type PgPool, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { settleDone } from './settle-done.ts'
import { settleFailed } from './settle-failed.ts'

/**
 * Writes a batch down: one statement per claim for what is DONE, one per subscription for the rest. Each statement
 * stands for itself: if a later one fails, the earlier ones are written and the caller offers the batch again.
 */
export async function settle(
  pool: PgPool,
  schema: QuotedSchema,
  batch: readonly Settled[],
): Promise<SettleReport> {
  const done = groupBy(batch.filter(needsDone), ({ delivery }) => delivery.lease)
  const failed = groupBy(
    batch.filter((settled) => !isDone(settled)),
    ({ delivery }) => delivery.subscriptionId,
  )
  return withClient(pool, async (client) => {
    const lost: DeliveryKey[] = []
    const dead: NewDeadLetter[] = []
    for (const group of done) {
      const [{ delivery }] = group
      const positions = group.map((settled) => settled.delivery.position)
      const settled = await settleDone(
        client,
        schema,
        delivery.subscriptionId,
        delivery.lease.token,
        positions,
      )
      lost.push(...missing(group, settled))
    }
    for (const group of failed) {
      const report = await settleFailed(client, schema, group[0].delivery.subscriptionId, group)
      lost.push(...missing(group, report.settled))
      dead.push(...report.dead)
    }
    return { lost, dead }
  })
}

type NonEmpty<Item> = readonly [Item, ...Item[]]

const isDone = ({ settlement }: Settled): boolean => settlement.kind === 'done'

// What its handler completed is DONE with the handler's own commit. Should that still be open, nobody waits for it here;
// should it be rolled back after all, the lease lapses and the event comes again.
const needsDone = ({ settlement }: Settled): boolean =>
  settlement.kind === 'done' && settlement.completed !== true

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

function missing(group: readonly Settled[], settled: ReadonlySet<string>): readonly DeliveryKey[] {
  if (settled.size === group.length) return []
  return group
    .filter(({ delivery }) => !settled.has(delivery.position))
    .map(({ delivery: { subscriptionId, lane, position } }) => ({ subscriptionId, lane, position }))
}
