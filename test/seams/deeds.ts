import type { SubscriptionContext } from '../../src/index.ts'
import type { Transaction } from '../../src/store/transaction.ts'
import { withIds } from './known-ids.ts'
import { type catalogue, followUp, type SceneEvent, toNewInput } from './scene-events.ts'
import { asOperation } from './seam-pool.ts'
import type { Process } from './stage.ts'

export type StepContext = SubscriptionContext<typeof catalogue, Transaction>

type Doer = Pick<Process, 'id' | 'pool' | 'outbox'>

/** What a handler has in hand. */
interface InHand {
  readonly event: SceneEvent
  readonly ctx: StepContext
  /** The next step of the history. */
  readonly at: () => number
}

/** What commits with a transaction of the handler's own is written down there, and nowhere else. */
function writeEffect(tx: Transaction, { id }: Doer, { event, at }: InHand): Promise<unknown> {
  return tx.query('insert into effect (n, event_id, worker) values ($1, $2, $3)', [at(), event.eventId, id])
}

/** Has its effect in a transaction that happens once. */
export async function doOnce(doer: Doer, inHand: InHand): Promise<void> {
  await asOperation('dispatch once', () => inHand.ctx.once(doer.pool, (tx) => writeEffect(tx, doer, inHand)))
}

/** Has its effect, publishes what follows and completes the delivery in one transaction. What it publishes last goes with COMMIT. */
export async function complete(doer: Doer, inHand: InHand, order: 'none' | 'aggregate'): Promise<void> {
  const { ctx, event } = inHand
  const next = followUp(event)
  const { type, ...input } = toNewInput(next)
  await asOperation('dispatch complete', () =>
    doer.outbox.inTransaction(doer.pool, async (tx) => {
      const publish = (): Promise<unknown> => withIds([next.eventId], () => ctx.publish(tx, type, input))
      await writeEffect(tx, doer, inHand)
      if (order === 'none') await publish()
      await ctx.complete(tx)
      if (order !== 'none') await publish()
    }),
  )
}
