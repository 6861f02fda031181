import { types } from 'node:util'
import { property } from '../runtime/property.ts'
import type { Transaction } from './transaction.ts'

/** What a client was given to send, as it was given. */
export type Given = readonly unknown[]

type Query = (...given: Given) => unknown

/** Has all that is sent on a client while a transaction is open on it. */
export interface Guard {
  send(given: Given): unknown
}

/** Stands before the `query` of a client. For good: V8 makes every use of an object slower once something was taken from it. */
export class ClientGate<Guarding extends Guard> {
  readonly #client: Transaction
  readonly #own: Query | null
  /** That of the transaction that is open on the client. */
  guard: Guarding | null = null

  constructor(client: Transaction) {
    this.#client = client
    this.#own = Object.hasOwn(client, 'query') ? (property(client, 'query') as Query) : null
  }

  readonly query: Query = (...given) => (this.guard === null ? this.send(given) : this.guard.send(given))

  /** Sends it as the client itself does. */
  send(given: Given): unknown {
    const query = this.#own ?? (property(Object.getPrototypeOf(this.#client), 'query') as Query)
    return Reflect.apply(query, this.#client, given)
  }
}

/** The gates of all clients that were asked for one. */
export class ClientGates<Guarding extends Guard> {
  /** Null for a client before which none can be set. */
  readonly #gates = new WeakMap<object, ClientGate<Guarding> | null>()

  /** Whose transaction is open on this client. */
  guardOf(client: object): Guarding | null {
    return this.#gates.get(client)?.guard ?? null
  }

  /** The gate of a client, which gets one where it has none; null where what is sent on it does not go past a gate. */
  gateOf(client: Transaction): ClientGate<Guarding> | null {
    let gate = this.#gates.get(client)
    if (gate === undefined) {
      gate = setBefore<Guarding>(client)
      this.#gates.set(client, gate)
    }
    // Somebody may have put a `query` of his own in its place since.
    return gate !== null && (client.query as unknown) === gate.query ? gate : null
  }
}

function setBefore<Guarding extends Guard>(client: Transaction): ClientGate<Guarding> | null {
  // A Proxy may go on with a `query` of its own, which asks the one below it in turn, and that would be ours.
  if (types.isProxy(client)) return null
  const gate = new ClientGate<Guarding>(client)
  const isSet = Reflect.defineProperty(client, 'query', {
    value: gate.query,
    configurable: true,
    writable: true,
  })
  return isSet ? gate : null
}
