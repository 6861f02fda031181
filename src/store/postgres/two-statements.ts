import { property } from '../../runtime/property.ts'
import { type Connection, write } from './commit-with.ts'

/** What `pg` makes of a statement: it writes the messages and reads the answers. */
interface Query {
  callback: (error: unknown, result?: unknown) => void
  prepare(connection: Connection): void
  handleCommandComplete(message: object, connection: Connection): void
  handleError(error: unknown, connection: Connection): void
}

/** A statement and its values in one. */
export interface StatementConfig {
  readonly text: string
  readonly values: readonly unknown[]
}

/** A statement as the client takes it. */
type Statement = readonly [text: string, values: readonly unknown[]] | readonly [StatementConfig]

type QueryClass = new (...statement: Statement) => Query

/** A statement that has values, sent in one write behind another one, which returns no rows. */
interface TwoStatements extends Query {
  firstText: string
  /** Counts only the first time, as the other does. */
  onFirstDone: () => void
  onFirstFailed: (error: unknown) => void
  readonly isFirstDone: boolean
  /** While the messages are written. What fails then are the values of the statement: the first one is on its way. */
  readonly isPreparing: boolean
}

type TwoStatementsClass = new (...statement: Statement) => TwoStatements

const METHODS = ['prepare', 'handleCommandComplete', 'handleError'] as const

/** Null for what is no such class. */
const classes = new WeakMap<QueryClass, TwoStatementsClass | null>()

/** What sends two statements in one round trip on this client of `pg`; null where it has no such way. */
export function twoStatementsOf(client: object): TwoStatementsClass | null {
  const Query = property(property(client, 'constructor'), 'Query')
  return typeof Query === 'function' ? classOf(Query as QueryClass) : null
}

/** Whether the client's callback was given no error. */
export function isNone(error: unknown): boolean {
  return error === null || error === undefined
}

function classOf(Query: QueryClass): TwoStatementsClass | null {
  const known = classes.get(Query)
  if (known !== undefined) return known
  const isKnownKind = METHODS.every((method) => typeof property(Query.prototype, method) === 'function')
  const made = isKnownKind ? twoStatements(Query) : null
  classes.set(Query, made)
  return made
}

/** Where the first fails, the server passes over the other: nothing is between them that would end the failure. */
function twoStatements(Query: QueryClass): TwoStatementsClass {
  return class extends Query {
    firstText = ''
    onFirstDone: () => void = () => undefined
    onFirstFailed: (error: unknown) => void = () => undefined
    isFirstDone = false
    isPreparing = false

    override prepare(connection: Connection): void {
      write(connection, this.firstText, [])
      this.isPreparing = true
      try {
        super.prepare(connection)
      } finally {
        this.isPreparing = false
      }
    }

    override handleCommandComplete(message: object, connection: Connection): void {
      if (this.isFirstDone) return super.handleCommandComplete(message, connection)
      this.isFirstDone = true
      this.onFirstDone()
    }

    override handleError(error: unknown, connection: Connection): void {
      if (!this.isPreparing) this.onFirstFailed(error)
      super.handleError(error, connection)
    }
  }
}
