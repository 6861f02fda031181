import { NotInTransactionError } from '../runtime/errors.ts'
import { property } from '../runtime/property.ts'
import { type ClientGate, ClientGates, type Given, type Guard } from './client-gate.ts'
import { DeferredBegin, type PendingBegin } from './deferred-begin.ts'
import type { Transaction } from './transaction.ts'

/** A statement whose answer nobody needs before the next one. */
export interface TailStatement {
  readonly text: string
  readonly values: readonly (string | null)[]
  /** What an error of it means to the caller. */
  readonly explain: (error: unknown) => unknown
}

/** What goes in one write with COMMIT. */
export interface WithCommit {
  /** BEGIN, where nothing of the transaction was sent yet. */
  readonly begin: string | null
  /** The statement before COMMIT, if there is one. */
  readonly last: TailStatement | null
  /** True tells the workers of other processes right after COMMIT, in a transaction of its own. */
  readonly tells: boolean
}

/** What came of COMMIT and of what went with it. */
export type CommitAnswer =
  | {
      readonly outcome: 'answered'
      /** The command that the server ran for COMMIT. */
      readonly command: string | undefined
      /** Where workers are told: settles when the server is done with that, and the client free for others. */
      readonly telling: Promise<void> | null
    }
  /** The error is that of the statement, or of BEGIN: nothing was said about COMMIT then. */
  | { readonly outcome: 'refused'; readonly error: unknown }
  /** None of it was sent, for this error: nothing was committed. */
  | { readonly outcome: 'unsent'; readonly error: unknown }

/** Sends all of it in one write, and answers when COMMIT is. Rejects with the error of COMMIT. */
export type CommitWith = (sent: WithCommit) => Promise<CommitAnswer>

// Weak, and by client: the publisher and the adapter meet only in the client that both were given.
const gates = new ClientGates<TransactionTail>()

/**
 * From now on everything that is sent on the client goes past this tail, and BEGIN with the first of it. Null where that
 * cannot be seen to: then BEGIN is for the caller to send.
 */
export function openTail(client: Transaction, begin: PendingBegin): TransactionTail | null {
  const gate = gates.gateOf(client)
  return gate === null ? null : new TransactionTail(gate, begin)
}

/** Whether a transaction of ours is open on this client, for which nothing was sent yet. */
export function isToBegin(tx: object): boolean {
  return gates.guardOf(tx)?.isToBegin === true
}

/** The tail of the transaction on this client, if a statement may be kept back in it. */
export function tailOf(tx: object): TransactionTail | null {
  const tail = gates.guardOf(tx)
  return tail?.mayHold === true ? tail : null
}

// What fails after a savepoint can be undone, so that whoever set it must hear of it in time.
const SAVEPOINT = /\bsavepoint\b/i
const LOOKED_AT = 200

/** Who waits for what must not be overtaken. */
interface Waiting {
  /** Whether what is kept back goes before it. */
  readonly isAfterHeld: boolean
  go(): void
  refuse(error: unknown): void
}

/**
 * The ends of a transaction whose BEGIN and COMMIT are ours. BEGIN goes with the first statement. At the other end a
 * statement is kept back as long as nothing else is sent on the client: another statement goes after it, as it was given,
 * and COMMIT goes with it. Each saves a round trip. What has to wait for an answer meanwhile goes on at the moment it comes,
 * in the order in which it was given: the client itself sends in that order too.
 */
export class TransactionTail implements Guard {
  readonly #gate: ClientGate<TransactionTail>
  readonly #begin: DeferredBegin
  readonly #line: Waiting[] = []
  #held: TailStatement | null = null
  #isSendingHeld = false
  #hasSavepoint = false
  #hasEnded = false

  constructor(gate: ClientGate<TransactionTail>, begin: PendingBegin) {
    this.#gate = gate
    this.#begin = new DeferredBegin(
      begin,
      (given) => gate.send(given),
      () => this.#goOn(),
    )
    gate.guard = this
  }

  /** Whether nothing of the transaction was sent, nor given away to be. */
  get isToBegin(): boolean {
    return this.#begin.isPending
  }

  /** Whether a statement may be kept back. */
  get mayHold(): boolean {
    return !this.#hasSavepoint
  }

  /** Keeps a statement back. One that was kept before is sent first, and its error thrown. */
  async hold(statement: TailStatement): Promise<void> {
    // Whoever did not wait for it must not believe that it was written: COMMIT goes without it.
    if (this.#hasEnded) throw new NotInTransactionError()
    await this.#inTurn(true, () => {
      this.#held = statement
    })
  }

  /** Ends it, and returns what is to go with COMMIT; null where nothing was sent, nor is to be. */
  async end(): Promise<Pick<WithCommit, 'begin' | 'last'> | null> {
    this.close()
    await this.#inTurn(false)
    const last = this.#held
    if (last === null && this.isToBegin) return null
    return { begin: this.#begin.take(), last }
  }

  /**
   * Ends it where the transaction is to be rolled back, and returns whether there is one. What is kept back is never sent;
   * what waits for an answer goes to the server before ROLLBACK does: behind that it would run alone.
   */
  async abandon(): Promise<boolean> {
    this.close()
    await this.#inTurn(false).catch(() => undefined)
    return !this.isToBegin
  }

  /** Ends it. What is kept back is never sent. */
  close(): void {
    this.#hasEnded = true
    if (this.#gate.guard === this) this.#gate.guard = null
  }

  /** Sends a statement of somebody else, after the one that is kept back. */
  send(given: Given): unknown {
    const [first] = given
    const text = typeof first === 'string' ? first : property(first, 'text')
    if (typeof text === 'string' && SAVEPOINT.test(text.slice(0, LOOKED_AT))) this.#hasSavepoint = true
    const mayGo = this.#isFree && this.#held === null && this.#line.length === 0
    if (mayGo && !this.isToBegin) return this.#gate.send(given)
    return (mayGo ? this.#begin.sendWith(given) : null) ?? this.#sendInTurn(given)
  }

  /** Whether nothing is under way that others must wait for. */
  get #isFree(): boolean {
    return !this.#begin.isUnderWay && this.#begin.failure === null && !this.#isSendingHeld
  }

  /** What answers by a function, or through an object of the caller's, is told of an error in the same way. */
  #sendInTurn(given: Given): unknown {
    if (!answersByCallback(given)) {
      return new Promise((resolve, reject) => {
        this.#wait({ isAfterHeld: true, go: () => resolve(this.#gate.send(given)), refuse: reject })
      })
    }
    this.#wait({
      isAfterHeld: true,
      go: () => this.#gate.send(given),
      refuse: (error) => tellByCallback(given, error),
    })
    return typeof property(given[0], 'submit') === 'function' ? given[0] : undefined
  }

  #inTurn(isAfterHeld: boolean, act: () => void = () => undefined): Promise<void> {
    return new Promise((resolve, refuse) => {
      const go = (): void => {
        act()
        resolve()
      }
      this.#wait({ isAfterHeld, go, refuse })
    })
  }

  #wait(waiting: Waiting): void {
    this.#line.push(waiting)
    this.#goOn()
  }

  /** Lets go on who is in line, up to whoever has to wait for something: BEGIN was sent before any statement comes here. */
  #goOn(): void {
    if (this.#begin.failure !== null) this.#refuseAll(this.#begin.failure.error)
    for (let next = this.#line[0]; next !== undefined && this.#isFree; next = this.#line[0]) {
      if (next.isAfterHeld && this.#held !== null) this.#sendHeld(this.#held)
      else {
        this.#line.shift()
        goOrRefuse(next)
      }
    }
  }

  #refuseAll(error: unknown): void {
    for (const waiting of this.#line.splice(0)) waiting.refuse(error)
  }

  #sendHeld(held: TailStatement): void {
    const answer = this.#answerTo([held.text, [...held.values]])
    if (answer === null) return
    this.#held = null
    this.#isSendingHeld = true
    answer.then(
      () => {
        this.#isSendingHeld = false
        this.#goOn()
      },
      (error: unknown) => {
        this.#isSendingHeld = false
        // The transaction has failed with it: who sends nothing more on it hears of that at COMMIT.
        this.#refuseAll(held.explain(error))
      },
    )
  }

  /** Null where BEGIN has to go before it, alone: that is under way then. */
  #answerTo(given: Given): Promise<unknown> | null {
    try {
      return this.isToBegin ? this.#begin.sendWith(given) : Promise.resolve(this.#gate.send(given))
    } catch (error) {
      return Promise.reject(error)
    }
  }
}

function goOrRefuse(waiting: Waiting): void {
  try {
    waiting.go()
  } catch (error) {
    waiting.refuse(error)
  }
}

/** Whether the client answers by a function that it was given, or through an object of the caller's. */
function answersByCallback(given: Given): boolean {
  return (
    given.some((argument) => typeof argument === 'function') ||
    typeof property(given[0], 'submit') === 'function' ||
    typeof property(given[0], 'callback') === 'function'
  )
}

/** Later, as the client itself does: what the function throws is nobody's here. */
function tellByCallback(given: Given, error: unknown): void {
  const [first] = given
  const callback = given.findLast((argument) => typeof argument === 'function') ?? property(first, 'callback')
  const tell = property(first, 'handleError')
  process.nextTick(() => {
    if (typeof callback === 'function') callback(error)
    else if (typeof tell === 'function') tell.call(first, error)
  })
}
