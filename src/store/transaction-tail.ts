import { types } from 'node:util'
import { NotInTransactionError } from '../runtime/errors.ts'
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

/** The tail of the transaction on this client, if a statement may be kept back in it. */
export function tailOf(tx: object): TransactionTail | null {
  const tail = gates.get(tx)?.tail ?? null
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
  readonly #gate: Gate | null
  #held: TailStatement | null = null
  #sending: Promise<void> | null = null
  #isOpen: boolean
  #hasEnded = false

  /** From now on everything that is sent on the client goes past this one, where that can be seen to. */
  constructor(client: Transaction) {
    const gate = gateOf(client)
    // Somebody may have put a `query` of his own in its place since.
    this.#gate = gate !== null && (client.query as unknown) === gate.query ? gate : null
    this.#isOpen = this.#gate !== null
    if (this.#gate !== null) this.#gate.tail = this
  }

  /** Whether a statement may be kept back. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Keeps a statement back. One that was kept before is sent first, and its error thrown. */
  async hold(statement: TailStatement): Promise<void> {
    for (let sending = this.#sendHeld(); sending !== null; sending = this.#sendHeld()) await sending
    // Whoever did not wait for it must not believe that it was written: COMMIT has gone without it.
    if (this.#hasEnded) throw new NotInTransactionError()
    this.#held = statement
  }

  /** Ends it, and returns the statement that is to go with COMMIT, if there is one. */
  async end(): Promise<TailStatement | null> {
    this.close()
    await this.#sending
    return this.#held
  }

  /** Ends it. What is kept back is never sent. */
  close(): void {
    this.#isOpen = false
    this.#hasEnded = true
    if (this.#gate?.tail === this) this.#gate.tail = null
  }

  /** Sends a statement of somebody else, after the one that is kept back. */
  sendAfterHeld(gate: Gate, given: Given): unknown {
    const [first] = given
    const text = typeof first === 'string' ? first : property(first, 'text')
    if (typeof text === 'string' && SAVEPOINT.test(text.slice(0, LOOKED_AT))) this.#isOpen = false
    const sending = this.#sendHeld()
    // Only promises can wait; what answers in another way is sent after it all the same, by the client's own queue.
    if (sending === null || answersByCallback(given)) return gate.send(given)
    return sending.then(() => gate.send(given))
  }

  /** Null where nothing is on its way that was kept back. */
  #sendHeld(): Promise<void> | null {
    const held = this.#held
    if (held === null || this.#gate === null) return this.#sending
    this.#held = null
    const answer = this.#gate.send([held.text, [...held.values]]) as Promise<unknown>
    const sending: Promise<void> = answer.then(
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

type Given = readonly unknown[]
type Query = (...given: Given) => unknown

/** Stands before the `query` of a client. For good: V8 makes every use of an object slower once something was taken from it. */
class Gate {
  readonly #client: Transaction
  readonly #own: Query | null
  /** That of the transaction that is open on the client. */
  tail: TransactionTail | null = null

  constructor(client: Transaction) {
    this.#client = client
    this.#own = Object.hasOwn(client, 'query') ? (property(client, 'query') as Query) : null
  }

  readonly query: Query = (...given) =>
    this.tail === null ? this.send(given) : this.tail.sendAfterHeld(this, given)

  /** Sends it as the client itself does. */
  send(given: Given): unknown {
    const query = this.#own ?? (property(Object.getPrototypeOf(this.#client), 'query') as Query)
    return Reflect.apply(query, this.#client, given)
  }
}

/** Null for a client before which none can be set. */
const gates = new WeakMap<object, Gate | null>()

function gateOf(client: Transaction): Gate | null {
  const known = gates.get(client)
  if (known !== undefined) return known
  const gate = newGate(client)
  gates.set(client, gate)
  return gate
}

function newGate(client: Transaction): Gate | null {
  // A Proxy may go on with a `query` of its own, which asks the one below it in turn, and that would be ours.
  if (types.isProxy(client)) return null
  const gate = new Gate(client)
  const isSet = Reflect.defineProperty(client, 'query', {
    value: gate.query,
    configurable: true,
    writable: true,
  })
  return isSet ? gate : null
}
