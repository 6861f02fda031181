import pg from 'pg'
import { property } from '../../src/runtime/property.ts'

const QUERY = property(pg.Client.prototype, 'query') as (...given: readonly unknown[]) => unknown

/** What writes its own messages on a connection, and is told what the server says to them. */
export interface Submittable {
  submit(connection: object): unknown
  handleCommandComplete(message: { readonly text: string }, connection: object): void
  handleError(error: unknown, connection: object): void
  handleReadyForQuery(connection: object): void
}

/** Whoever is asked about all that is sent on a connection. */
export interface Holder {
  /** Sends a statement that is answered by a promise, or does not. */
  ask(client: SeamClient, statement: unknown, send: () => Promise<unknown>): Promise<unknown>
  /** Is about to send what writes its own messages. */
  watch(client: SeamClient, sent: Submittable): void
}

/**
 * A client as `pg` makes it, and no Proxy: the outbox puts its gate before it and sends in one write what it can. Whoever holds
 * it learns of everything behind that gate.
 */
export class SeamClient extends pg.Client {
  holder: Holder | null = null

  override query(...given: readonly unknown[]): never {
    const send = (): unknown => Reflect.apply(QUERY, this, given)
    const [first] = given
    if (this.holder === null) return send() as never
    if (!isSubmittable(first)) return this.holder.ask(this, first, send as () => Promise<unknown>) as never
    this.holder.watch(this, first)
    return send() as never
  }
}

function isSubmittable(given: unknown): given is Submittable {
  return typeof given === 'object' && given !== null && 'submit' in given
}

/** What `pg` writes with, as far as it is looked at here. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void }
}

/** What something would write. */
export interface Script {
  /** The statements in it. */
  readonly texts: readonly string[]
  /** Writes it, all at once. Returns what `submit` did. */
  play(): unknown
}

/** Has it write on nothing, to know its statements before they are sent. */
export function scriptOf(connection: object, submit: (connection: object) => unknown): Script {
  const texts: string[] = []
  const calls: (() => unknown)[] = []
  const recorder = new Proxy(connection, {
    get(target, name) {
      // It is corked when all of it is written.
      if (name === 'stream') return {}
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      return (...args: unknown[]) => {
        if (name === 'parse') texts.push((args[0] as { readonly text: string }).text)
        if (name === 'query') texts.push(String(args[0]))
        calls.push(() => Reflect.apply(member, target, args))
      }
    },
  })
  const answer = submit(recorder)
  const { stream } = connection as Wire
  const play = (): unknown => {
    stream.cork()
    for (const call of calls) call()
    stream.uncork()
    return answer
  }
  return { texts, play }
}
