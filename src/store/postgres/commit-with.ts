import { property } from '../../runtime/property.ts'
import type { CommitAnswer, CommitWith, WithCommit } from '../transaction-tail.ts'

/** What `pg` writes the messages of its protocol with. */
export interface Connection {
  parse(message: { readonly text: string }): void
  bind(message: { readonly values: readonly (string | null)[] }): void
  execute(message: object): void
  flush(): void
  sync(): void
  readonly stream: { cork?(): void; uncork?(): void }
}

const MESSAGES = ['parse', 'bind', 'execute', 'flush', 'sync'] as const

/** A client of `pg`, which takes any object that writes its own messages. */
interface SubmittingClient {
  query(submittable: CommitExchange): unknown
}

/**
 * The way to send something in one write with COMMIT; null where this client has none. `notifySql` is what tells workers.
 */
export function commitWith(client: object, notifySql: string): CommitWith | null {
  const connection = property(client, 'connection')
  const canWrite = MESSAGES.every((message) => typeof property(connection, message) === 'function')
  // A pipelining client refuses such objects, and saves the round trips by itself.
  if (!canWrite || property(client, 'pipeline') === true) return null
  return (sent) =>
    new Promise((resolve, reject) => {
      const exchange = new CommitExchange(sent, notifySql, { resolve, reject })
      ;(client as SubmittingClient).query(exchange)
    })
}

/** One statement, without the end that would have the server answer. */
export function write(connection: Connection, text: string, values: readonly (string | null)[]): void {
  connection.parse({ text })
  connection.bind({ values })
  connection.execute({})
}

type Callback = (error: unknown, answer?: CommitAnswer) => void

/** Who waits for the answer to COMMIT. */
interface Waiting {
  resolve(answer: CommitAnswer): void
  reject(error: unknown): void
}

/**
 * All in one write: BEGIN where it is still to be sent, the last statement, COMMIT and, in a transaction of its own, a
 * notification. Where one of them fails, the server passes over those behind it. The server is asked for the answer to COMMIT before it goes on: a notification
 * may have to wait for others, and whoever has committed must not.
 */
class CommitExchange {
  // By this name: a client with a time limit puts its own before it.
  callback: Callback
  readonly #sent: WithCommit
  readonly #notifySql: string
  readonly #waiting: Waiting
  readonly #commands: string[] = []
  readonly #ended: Promise<void>
  #isWritten = false

  constructor(sent: WithCommit, notifySql: string, waiting: Waiting) {
    this.#sent = sent
    this.#notifySql = notifySql
    this.#waiting = waiting
    let callback: Callback = () => undefined
    this.#ended = new Promise((resolve, reject) => {
      callback = (error, answer = this.#answered(null)) => {
        // Each of these counts only the first time: COMMIT may have been answered before.
        if (error === null) waiting.resolve(answer)
        else if (this.#isWritten) waiting.reject(error)
        else waiting.resolve({ outcome: 'unsent', error })
        if (error === null) resolve()
        else reject(error)
      }
    })
    // Where COMMIT itself failed nobody asks for it.
    this.#ended.catch(() => undefined)
    this.callback = callback
  }

  submit(connection: Connection): null {
    const { begin, last, tells } = this.#sent
    this.#isWritten = true
    connection.stream.cork?.()
    if (begin !== null) write(connection, begin, [])
    if (last !== null) write(connection, last.text, last.values)
    write(connection, 'COMMIT', [])
    if (tells) {
      connection.flush()
      write(connection, this.#notifySql, [])
    }
    connection.sync()
    connection.stream.uncork?.()
    return null
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    this.#commands.push(text)
    const isOver = this.#commands.length > this.#before
    if (isOver && this.#sent.tells) this.#waiting.resolve(this.#answered(this.#ended))
  }

  handleError(error: unknown): void {
    const isBefore = this.#isWritten && this.#commands.length < this.#before
    if (isBefore) this.callback(null, { outcome: 'refused', error })
    else this.callback(error)
  }

  handleReadyForQuery(): void {
    this.callback(null)
  }

  handleRowDescription(): void {}
  handleDataRow(): void {}
  handlePortalSuspended(): void {}
  handleEmptyQuery(): void {}

  #answered(telling: Promise<void> | null): CommitAnswer {
    return { outcome: 'answered', command: this.#commands[this.#before], telling }
  }

  /** How many go before COMMIT. */
  get #before(): number {
    return [this.#sent.begin, this.#sent.last].filter((statement) => statement !== null).length
  }
}
