import { property } from '../../runtime/property.ts'
import type { BeginWith } from '../deferred-begin.ts'
import { type Connection, write } from './commit-with.ts'

/** What `pg` makes of a statement: it writes the messages and reads the answers. */
interface Query {
  callback: (error: unknown, result?: unknown) => void
  prepare(connection: Connection): void
  handleCommandComplete(message: object, connection: Connection): void
  handleError(error: unknown, connection: Connection): void
}

/** A statement and its values in one. */
interface StatementConfig {
  readonly text: string
  readonly values: readonly unknown[]
}

/** A statement as the client takes it. */
type Statement = readonly [text: string, values: readonly unknown[]] | readonly [StatementConfig]

type QueryClass = new (...statement: Statement) => Query

const METHODS = ['prepare', 'handleCommandComplete', 'handleError'] as const

/** The way to send BEGIN and a statement in one round trip; null where this client has none. */
export function beginWith(client: object): BeginWith | null {
  const Query = property(property(client, 'constructor'), 'Query')
  const BeginAnd = typeof Query === 'function' ? classOf(Query as QueryClass) : null
  if (BeginAnd === null) return null
  return (begin, [text, values, ...rest]) => {
    // Without values the client sends another kind of message, which the server would not pass over if BEGIN failed; and
    // so it does without a text, whatever the values.
    const isPrepared = typeof text === 'string' && text !== '' && Array.isArray(values) && values.length > 0
    if (!isPrepared || rest.length > 0) return null
    const query = new BeginAnd(text, values)
    query.beginText = begin
    const begun = new Promise<void>((resolve, reject) => {
      query.onBegun = resolve
      query.onNotBegun = reject
    })
    const answer = new Promise<unknown>((resolve, reject) => {
      query.callback = (given, result) => {
        const error = isNone(given) && !query.hasBegun ? new Error('BEGIN was not run') : given
        if (isNone(error)) return resolve(result)
        // Whoever ends a query before it is sent does that here, and nothing more is heard of it.
        if (!query.isPreparing) query.onNotBegun(error)
        reject(error)
      }
    })
    return { query, answer: answer.catch(throwTraced), begun }
  }
}

function isNone(error: unknown): boolean {
  return error === null || error === undefined
}

/** As the client itself does. Where the promise is rejected, and not before, the stack leads back to whoever waits for it. */
function throwTraced(error: unknown): never {
  if (error instanceof Error) Error.captureStackTrace(error)
  throw error
}

interface BeginAndQuery extends Query {
  beginText: string
  /** Counts only the first time, as the other does. */
  onBegun: () => void
  onNotBegun: (error: unknown) => void
  readonly hasBegun: boolean
  /** While the messages are written. What fails then are the values of the statement: BEGIN is on its way. */
  readonly isPreparing: boolean
}

type BeginAndClass = new (...statement: Statement) => BeginAndQuery

/** Null for what is no such class. */
const classes = new WeakMap<QueryClass, BeginAndClass | null>()

function classOf(Query: QueryClass): BeginAndClass | null {
  const known = classes.get(Query)
  if (known !== undefined) return known
  const isKnownKind = METHODS.every((method) => typeof property(Query.prototype, method) === 'function')
  const made = isKnownKind ? beginAnd(Query) : null
  classes.set(Query, made)
  return made
}

/** Sends a statement that has values right after one that returns no rows. Without BEGIN, the two are one transaction. */
export type SendAfter = (first: string, statement: StatementConfig) => Promise<unknown>

/** The way to send two statements in one round trip; null where this client has none. */
export function sendAfter(client: object): SendAfter | null {
  const Query = property(property(client, 'constructor'), 'Query')
  const Both = typeof Query === 'function' ? classOf(Query as QueryClass) : null
  if (Both === null) return null
  return (first, statement) =>
    new Promise((resolve, reject) => {
      const query = new Both(statement)
      query.beginText = first
      query.callback = (error, result) => (isNone(error) ? resolve(result) : reject(error))
      ;(client as { query(sent: object): unknown }).query(query)
    })
}

/** Where BEGIN fails, the server passes over the statement: nothing is between them that would end the failure. */
function beginAnd(Query: QueryClass): BeginAndClass {
  return class extends Query {
    beginText = 'BEGIN'
    onBegun: () => void = () => undefined
    onNotBegun: (error: unknown) => void = () => undefined
    hasBegun = false
    isPreparing = false

    override prepare(connection: Connection): void {
      write(connection, this.beginText, [])
      this.isPreparing = true
      try {
        super.prepare(connection)
      } finally {
        this.isPreparing = false
      }
    }

    override handleCommandComplete(message: object, connection: Connection): void {
      if (this.hasBegun) return super.handleCommandComplete(message, connection)
      this.hasBegun = true
      this.onBegun()
    }

    override handleError(error: unknown, connection: Connection): void {
      if (!this.isPreparing) this.onNotBegun(error)
      super.handleError(error, connection)
    }
  }
}
