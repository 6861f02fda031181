import type { Middleware } from '../../dispatch/handler.ts'
import type { CatalogueEvent } from '../../event/catalogue.ts'
import type { TransactionPool } from '../../publish/in-transaction.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Transaction } from '../../store/transaction.ts'
import type { Subscription } from '../../worker/subscription.ts'
import type { SubscriptionContext } from '../../worker/subscription-options.ts'
import type { ShopCatalogue } from './catalogue.ts'
import type { Journal } from './journal.ts'
import { type ShopOutbox, webhookOf } from './shop.ts'
import type { ShopStatements } from './statements.ts'

/** What the handlers of the demo work with. */
export interface SubscriptionParts {
  readonly outbox: ShopOutbox
  readonly pool: TransactionPool
  readonly statements: ShopStatements
  readonly journal: Journal
  readonly clock: Clock
}

type ShopSubscription = Subscription<ShopCatalogue, Transaction>
type Handled = CatalogueEvent<ShopCatalogue>
type Context = SubscriptionContext<ShopCatalogue, Transaction>

const WEBHOOK_MS = 5
const FLAKY_ATTEMPTS = 2
const FIRST_RETRY_MS = 200
const LONGEST_RETRY_MS = 1_000

/** The three subscriptions of the demo. Each of them gets every event. */
export function shopSubscriptions(parts: SubscriptionParts): readonly ShopSubscription[] {
  return [notifications(parts), ledger(parts), webhooks(parts)]
}

/** Fast and in any order. */
function notifications({ outbox, journal }: SubscriptionParts): ShopSubscription {
  const notify = (): void => undefined // a push message, say
  return outbox.subscription('notifications', {
    on: { OrderPlaced: notify, OrderPaid: notify, OrderShipped: notify },
    middleware: [watched(journal)],
  })
}

/** In order for each order. The entry and the record that it was made commit together, so it is made once. */
function ledger({ outbox, pool, statements, journal }: SubscriptionParts): ShopSubscription {
  const append = async (event: Handled, ctx: Context): Promise<void> => {
    const entry = [event.aggregateId, event.sequence, event.type, event.payload.amount]
    await ctx.once(pool, (tx) => tx.query(statements.appendLedger, entry))
  }
  return outbox.subscription('ledger', {
    order: 'aggregate',
    on: { OrderPlaced: append, OrderPaid: append, OrderShipped: append },
    middleware: [watched(journal)],
  })
}

/** Flaky. Its failures delay neither the others nor the good ones of its own. */
function webhooks({ outbox, journal, clock }: SubscriptionParts): ShopSubscription {
  const call = async (event: Handled, ctx: Context): Promise<void> => {
    await clock.sleep(WEBHOOK_MS, ctx.signal)
    const webhook = webhookOf(event.payload.customer)
    if (webhook === 'fine' || (webhook === 'flaky' && ctx.attempt > FLAKY_ATTEMPTS)) return
    throw new Error(`POST https://${event.payload.customer}.example/hook answered 503 Service Unavailable`)
  }
  return outbox.subscription('webhooks', {
    on: { OrderPlaced: call, OrderPaid: call, OrderShipped: call },
    middleware: [watched(journal)],
    concurrency: 20,
    maxAttempts: 4,
    retry: {
      delayMs: (failedAttempts, random) =>
        Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (failedAttempts - 1)) * (0.8 + 0.4 * random()),
    },
  })
}

/** Tells the journal of every event that comes in and of every one that is done. */
function watched(journal: Journal): Middleware {
  return (next) => async (event, ctx) => {
    journal.arrived(event.eventId, ctx.attempt)
    await next(event, ctx)
    journal.handled(event.eventId, ctx.attempt)
  }
}
