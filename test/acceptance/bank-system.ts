import {
  defineEvents,
  fixed,
  NonRetryableError,
  type Subscription,
  type SubscriptionOptions,
  type Transaction,
  unchecked,
} from '../../src/index.ts'
import { eventually, openSystem, type System } from './support.ts'

/** Events of accounts whose numbers the tests choose. */
export const events = defineEvents({
  Paid: { stream: 'bank.account', aggregate: 'account', schema: unchecked<{ n: number }>() },
  Refunded: { stream: 'bank.refund', aggregate: 'account', schema: unchecked<{ n: number }>() },
})

export type Bank = System<typeof events>
type Options = SubscriptionOptions<typeof events, Transaction>
export type BankSubscription = Subscription<typeof events, Transaction>

export const openBank = (): Promise<Bank> => openSystem(events)

/** What handlers of a scene saw, and what they do with it. */
export class Ledger {
  /** `account:n` of every event that was handled, in order. */
  readonly handled: string[] = []
  /** Every attempt. */
  readonly attempts: string[] = []
  /** How many of one key ran at once, at most. */
  mostAtOnce = 0
  /** Which fail for good. */
  isSick: (account: string, n: number) => boolean = () => false
  readonly #running = new Map<string, number>()

  subscription(bank: Bank, name: string, options: Partial<Options> = {}): BankSubscription {
    const handle = async (event: {
      readonly aggregateId: string
      readonly payload: { readonly n: number }
    }): Promise<void> => {
      const { aggregateId: account, payload } = event
      const running = (this.#running.get(account) ?? 0) + 1
      this.#running.set(account, running)
      this.mostAtOnce = Math.max(this.mostAtOnce, running)
      this.attempts.push(`${account}:${payload.n}`)
      // One turn of the event loop, so that another of the key could begin.
      await new Promise((resolve) => setImmediate(resolve))
      this.#running.set(account, running - 1)
      if (this.isSick(account, payload.n)) throw new NonRetryableError('sick', { failureCode: 'SICK' })
      this.handled.push(`${account}:${payload.n}`)
    }
    return bank.outbox.subscription(name, {
      pollMs: 20,
      retry: fixed(0),
      maxAttempts: 2,
      ...options,
      on: { Paid: handle, Refunded: handle, ...options.on },
    })
  }
}

/** Publishes events of one account, in one transaction. */
export async function pay(
  bank: Bank,
  account: string,
  numbers: readonly number[],
): Promise<readonly string[]> {
  const { outbox, pool } = bank
  return outbox.inTransaction(pool, (tx) =>
    outbox.publishAll(
      tx,
      numbers.map((n) => ({ type: 'Paid' as const, aggregateId: account, payload: { n } })),
    ),
  )
}

export const KIM = { operator: 'Kim Minji', note: 'the destination is back' } as const

/** What was recorded, oldest first. */
export async function operatorLog(bank: Bank): Promise<
  readonly {
    readonly operator: string
    readonly action: string
    readonly affected: number
    readonly note: string | null
  }[]
> {
  return bank.rows('select operator, action, affected, note from outbox_operator_log order by id')
}

export const numbers = (count: number, from = 1): readonly number[] =>
  Array.from({ length: count }, (_, n) => n + from)

/** Until so many dead letters wait for a person. */
export async function allDied(bank: Bank, letters: number): Promise<void> {
  await eventually(`${letters} died`, async () => (await bank.outbox.deadLetters.count()) === letters)
}
