import type { ClaimedDelivery } from '../delivery/delivery.ts'
import type { ContextServices, Once } from '../dispatch/handler.ts'
import type { Catalogue } from '../event/catalogue.ts'
import type { OutboxEvent } from '../event/event.ts'
import { runOnce } from '../inbox/once.ts'
import { chainedInput } from '../publish/chained.ts'
import type { EventBus, PublishInput } from '../publish/event-bus.ts'
import { inTransaction, type TransactionPool } from '../publish/in-transaction.ts'
import { assertTransactionHandle } from '../publish/transaction-handle.ts'
import { functionProblem, refuseProblems } from '../runtime/option-checks.ts'
import { property } from '../runtime/property.ts'
import type { InboxStore } from '../store/inbox-store.ts'
import type { PublishStore } from '../store/publish-store.ts'

/** What the context of handlers leads to. */
export interface ContextServicesParts {
  readonly store: InboxStore<unknown> & Pick<PublishStore<unknown>, 'assertInTransaction'>
  readonly bus: EventBus<Catalogue, unknown>
  /** Told that a handler has published: once it is done, there may be work. */
  onPublished(): void
}

/** What `ctx.once`, `ctx.complete` and `ctx.publish` do. */
export function createContextServices(parts: ContextServicesParts): ContextServices<ClaimedDelivery> {
  return {
    once: (event, subscription, handle, work) => once(parts, { event, subscription }, handle, work),
    complete: async (delivery, tx) => {
      await assertTransaction(parts, tx, 'ctx.complete', 'ctx.complete(tx)')
      await parts.store.completeInTransaction(tx, delivery)
    },
    publish: async (event, tx, name, input) => {
      const id = await parts.bus.publish(tx, name, chainedInput(event, input as PublishInput))
      parts.onPublished()
      return id
    },
  }
}

async function once<Handle, Result>(
  parts: ContextServicesParts,
  { event, subscription }: { readonly event: OutboxEvent; readonly subscription: string },
  handle: Handle,
  work: (tx: Handle) => Promise<Result>,
): Promise<Once<Result>> {
  refuseProblems('ctx.once', [functionProblem('the work', work ?? null)])
  const key = { subscription, eventId: event.eventId }
  if (!isPool(handle)) {
    await assertTransaction(parts, handle, 'ctx.once', 'ctx.once(tx, work)')
    return runOnce(parts.store, handle, key, () => work(handle))
  }
  // What the pool hands out is what the work was written for: the types of ctx.once say so.
  return inTransaction(handle, (tx) => runOnce(parts.store, tx, key, () => work(tx as unknown as Handle)))
}

/** A record that commits by itself would outlive an effect that fails: the retry would then skip it, for ever. */
async function assertTransaction(
  { store }: ContextServicesParts,
  tx: unknown,
  operation: string,
  call: string,
): Promise<void> {
  assertTransactionHandle(tx, operation, () => call)
  await store.assertInTransaction(tx, operation)
}

/** A pool connects and cannot be released; a client that was connected by hand counts no other clients. */
function isPool(handle: unknown): handle is TransactionPool {
  if (
    typeof property(handle, 'connect') !== 'function' ||
    typeof property(handle, 'release') === 'function'
  ) {
    return false
  }
  return typeof property(handle, 'query') !== 'function' || typeof property(handle, 'totalCount') === 'number'
}
