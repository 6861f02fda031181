import { property } from '../../runtime/property.ts'
import type { CommitAnswer, CommitWith, TailStatement } from '../transaction-tail.ts'

/** What `pg` writes the messages of its protocol with. */
interface Connection {
  parse(message: { readonly text: string }): void
  bind(message: { readonly values: readonly (string | null)[] }): void
  execute(message: object): void
  sync(): void
  readonly stream: { cork?(): void; uncork?(): void }
}

const MESSAGES = ['parse', 'bind', 'execute', 'sync'] as const

/** A client of `pg`, which takes any object that writes its own messages. */
interface SubmittingClient {
  query(submittable: StatementAndCommit): unknown
}

/** The way to send a statement and COMMIT in one round trip; null where this client has none. */
export function commitWith(client: object): CommitWith | null {
  const connection = property(client, 'connection')
  const canWrite = MESSAGES.every((message) => typeof property(connection, message) === 'function')
  // A pipelining client refuses such objects, and saves the round trips by itself.
  if (!canWrite || property(client, 'pipeline') === true) return null
  return (statement) =>
    new Promise((resolve, reject) => {
      const submittable = new StatementAndCommit(statement, (error, answer = {}) => {
        if (error === null) resolve(answer)
        else reject(error)
      })
      ;(client as SubmittingClient).query(submittable)
    })
}

type Callback = (error: unknown, answer?: CommitAnswer) => void

/** Both in one write. Where the statement fails, the server passes over COMMIT. */
class StatementAndCommit {
  // By this name: a client with a time limit puts its own before it.
  callback: Callback
  readonly #statement: TailStatement
  readonly #commands: string[] = []

  constructor(statement: TailStatement, callback: Callback) {
    this.#statement = statement
    this.callback = callback
  }

  submit(connection: Connection): null {
    connection.stream.cork?.()
    connection.parse({ text: this.#statement.text })
    connection.bind({ values: this.#statement.values })
    connection.execute({})
    connection.parse({ text: 'COMMIT' })
    connection.bind({ values: [] })
    connection.execute({})
    connection.sync()
    connection.stream.uncork?.()
    return null
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    this.#commands.push(text)
  }

  handleError(error: unknown): void {
    if (this.#commands.length === 0) this.callback(null, { refused: error })
    else this.callback(error)
  }

  handleReadyForQuery(): void {
    this.callback(null, { command: this.#commands[1] })
  }

  handleRowDescription(): void {}
  handleDataRow(): void {}
  handlePortalSuspended(): void {}
  handleEmptyQuery(): void {}
}
