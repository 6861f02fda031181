import { property } from '../runtime/property.ts'
import type { Transaction } from './transaction.ts'

/** A statement whose answer nobody needs before the next one. */
export interface TailStatement {
  readonly text: string
  readonly values: readonly (string | null)[]
  /** What an error of it means to the caller. */
  readonly explain: (error: unknown) => unknown
}

/** What came of a statement that went with COMMIT. */
export interface CommitAnswer {
  /** The command that the server ran for COMMIT. */
  readonly command?: string | undefined
  /** The error of the statement, where it has one: nothing was said about COMMIT then. */
  readonly refused?: unknown
}

/** Sends a statement and COMMIT in one round trip. Rejects with the error of COMMIT. */
export type CommitWith = (statement: TailStatement) => Promise<CommitAnswer>

const tails = new WeakMap<object, TransactionTail>()

/** The tail of the transaction on this client, if a statement may be kept back in it. */
export function tailOf(tx: object): TransactionTail | null {
  const tail = tails.get(tx)
  return tail?.isOpen === true ? tail : null
}

// What fails after a savepoint can be undone, so that whoever set it must hear of it in time.
const SAVEPOINT = /\bsavepoint\b/i
const LOOKED_AT = 200

/**
 * The end of a transaction whose COMMIT is ours. A statement is kept back in it as long as nothing else is sent on the
 * client: another statement goes after it, as it was given, and COMMIT goes with it, which saves a round trip.
 */
export class TransactionTail {
  readonly #client: Transaction
  readonly #own: PropertyDescriptor | undefined
  readonly #query: (...given: unknown[]) => Promise<unknown>
  #held: TailStatement | null = null
  #sending: Promise<void> | null = null
  #isOpen = true

  /** From now on everything that is sent on the client goes past this one, if the client is what it seems to be. */
  constructor(client: Transaction) {
    this.#client = client
    this.#own = Object.getOwnPropertyDescriptor(client, 'query')
    this.#query = client.query.bind(client) as (...given: unknown[]) => Promise<unknown>
    const query = (...given: unknown[]): unknown => this.#sendAfterHeld(given)
    const isSet = Reflect.defineProperty(client, 'query', {
      value: query,
      configurable: true,
      writable: true,
    })
    tails.set(client, this)
    // One that stands for another, as a Proxy does, may go on with a `query` of its own, which asks this one in turn.
    if (!isSet || (client.query as unknown) !== query) this.close()
  }

  /** Whether a statement may be kept back. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Keeps a statement back. One that was kept before is sent first, and its error thrown. */
  async hold(statement: TailStatement): Promise<void> {
    for (let sending = this.#sendHeld(); sending !== null; sending = this.#sendHeld()) await sending
    this.#held = statement
  }

  /** Gives the client its own `query` back, and returns the statement that is to go with COMMIT, if there is one. */
  async end(): Promise<TailStatement | null> {
    this.close()
    await this.#sending
    return this.#held
  }

  /** Gives the client its own `query` back. What is kept back is never sent. */
  close(): void {
    this.#isOpen = false
    if (tails.get(this.#client) !== this) return
    tails.delete(this.#client)
    if (this.#own === undefined) Reflect.deleteProperty(this.#client, 'query')
    else Object.defineProperty(this.#client, 'query', this.#own)
  }

  #sendAfterHeld(given: unknown[]): unknown {
    const [first] = given
    const text = typeof first === 'string' ? first : property(first, 'text')
    if (typeof text === 'string' && SAVEPOINT.test(text.slice(0, LOOKED_AT))) this.#isOpen = false
    const sending = this.#sendHeld()
    // Only promises can wait; what answers in another way is sent after it all the same, by the client's own queue.
    if (sending === null || answersByCallback(given)) return this.#query(...given)
    return sending.then(() => this.#query(...given))
  }

  /** Null where nothing is on its way that was kept back. */
  #sendHeld(): Promise<void> | null {
    const held = this.#held
    if (held === null) return this.#sending
    this.#held = null
    const sending: Promise<void> = this.#query(held.text, [...held.values]).then(
      () => this.#sent(sending),
      (error: unknown) => {
        this.#sent(sending)
        throw held.explain(error)
      },
    )
    // The transaction has failed with it: who sends nothing more on it hears of that at COMMIT.
    sending.catch(() => undefined)
    this.#sending = sending
    return sending
  }

  #sent(sending: Promise<void>): void {
    if (this.#sending === sending) this.#sending = null
  }
}

/** Whether the client answers by a function that it was given, or through an object of the caller's. */
function answersByCallback(given: readonly unknown[]): boolean {
  return (
    given.some((argument) => typeof argument === 'function') ||
    typeof property(given[0], 'submit') === 'function' ||
    typeof property(given[0], 'callback') === 'function'
  )
}
