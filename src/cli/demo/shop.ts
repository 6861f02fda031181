import type { Outbox } from '../../outbox.ts'
import type { PooledTransaction, TransactionPool } from '../../publish/in-transaction.ts'
import { textProperty } from '../../runtime/property.ts'
import type { Transaction } from '../../store/transaction.ts'
import type { OrderFacts, ShopCatalogue, ShopEvent } from './catalogue.ts'
import type { Journal } from './journal.ts'
import type { ShopStatements } from './statements.ts'

/** The outbox of the shop. */
export type ShopOutbox = Outbox<ShopCatalogue, Transaction>

/** What a shop is made of. */
export interface ShopParts {
  readonly pool: TransactionPool
  readonly outbox: ShopOutbox
  readonly statements: ShopStatements
  readonly journal: Journal
}

/** An order on its way through the shop. */
interface Order extends OrderFacts {
  readonly id: string
}

/** How many customers take turns. See `webhookOf`: what happens to a customer's webhook depends on the number. */
const CUSTOMERS = 50
/** An early one, so that a short run has its dead letters too. */
const GONE = 10
const ROLLED_BACK_EVERY = 20
const EXPRESS_EVERY = 10

/** Thrown inside a business transaction on purpose: nothing of it may be seen by anybody. */
class ChangedMyMind extends Error {}

/** A shop that places, pays and ships orders. Each act is one business transaction with its events. */
export class Shop {
  readonly #parts: ShopParts
  readonly #unpaid: Order[] = []
  readonly #unshipped: Order[] = []
  #transactions = 0
  #customers = 0

  constructor(parts: ShopParts) {
    this.#parts = parts
  }

  /** Runs the next business transaction: half of them place an order, the others pay or ship one. */
  async serveNext(): Promise<void> {
    this.#transactions += 1
    const turn = this.#transactions % 4
    const paying = turn === 2 ? this.#unpaid.shift() : undefined
    if (paying !== undefined) return this.#advance(paying, 'paid', 'OrderPaid', this.#unpaid, this.#unshipped)
    const shipping = turn === 3 ? this.#unshipped.shift() : undefined
    if (shipping !== undefined) return this.#advance(shipping, 'shipped', 'OrderShipped', this.#unshipped, [])
    return this.#place()
  }

  async #place(): Promise<void> {
    const customer = this.#customers + 1
    // Who changes their mind has not been served: the next order is theirs, so no customer is missing from any run.
    if (!this.#isDoomed()) this.#customers = customer
    const facts = {
      customer: `customer-${customer % CUSTOMERS}`,
      amount: 1_000 * (1 + (customer % 90)),
    }
    const isExpress = customer % EXPRESS_EVERY === 0
    const placed = await this.#inTransaction(async (tx, publish) => {
      const { insertOrder, updateOrder } = this.#parts.statements
      const { rows } = await tx.query(insertOrder, [facts.customer, facts.amount])
      const order = { ...facts, id: textProperty(rows[0], 'id') ?? '' }
      await publish(order, 'OrderPlaced')
      if (isExpress) {
        await tx.query(updateOrder, [order.id, 'paid'])
        await publish(order, 'OrderPaid')
      }
      return order
    })
    if (placed !== null) (isExpress ? this.#unshipped : this.#unpaid).push(placed)
  }

  /** Moves an order on; if the transaction rolls back, the order is where it was. */
  async #advance(order: Order, status: string, event: ShopEvent, from: Order[], to: Order[]): Promise<void> {
    const advanced = await this.#inTransaction(async (tx, publish) => {
      await tx.query(this.#parts.statements.updateOrder, [order.id, status])
      await publish(order, event)
      return order
    })
    const next = advanced === null ? from : to
    next.push(order)
  }

  #isDoomed(): boolean {
    return this.#transactions % ROLLED_BACK_EVERY === 0
  }

  /** One business transaction. Null when it was rolled back on purpose. */
  async #inTransaction(
    work: (
      tx: PooledTransaction,
      publish: (order: Order, event: ShopEvent) => Promise<void>,
    ) => Promise<Order>,
  ): Promise<Order | null> {
    const { outbox, pool, journal } = this.#parts
    const isDoomed = this.#isDoomed()
    let eventIds: readonly string[] = []
    try {
      const order = await outbox.inTransaction(pool, async (tx) => {
        eventIds = []
        const result = await work(tx, async ({ id: aggregateId, customer, amount }, event) => {
          const eventId = await outbox.publish(tx, event, { aggregateId, payload: { customer, amount } })
          eventIds = [...eventIds, eventId]
          journal.written([eventId])
        })
        if (isDoomed) throw new ChangedMyMind()
        return result
      })
      journal.committed(eventIds)
      return order
    } catch (error) {
      if (!(error instanceof ChangedMyMind)) throw error
      journal.rolledBack(eventIds)
      return null
    }
  }
}

/** What is at the other end of a customer's webhook: most answer, one in five fails at first, one in fifty is gone. */
export function webhookOf(customer: string): 'fine' | 'flaky' | 'gone' {
  const number = Number(customer.slice('customer-'.length))
  if (number === GONE) return 'gone'
  return number % 5 === 1 ? 'flaky' : 'fine'
}
