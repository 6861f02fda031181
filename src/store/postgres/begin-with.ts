import type { BeginWith } from '../deferred-begin.ts'
import { isNone, twoStatementsOf } from './two-statements.ts'

/** The way to send BEGIN and a statement in one round trip; null where this client has none. */
export function beginWith(client: object): BeginWith | null {
  const BeginAnd = twoStatementsOf(client)
  if (BeginAnd === null) return null
  return (begin, [text, values, ...rest]) => {
    // Without values the client sends another kind of message, which the server would not pass over if BEGIN failed; and
    // so it does without a text, whatever the values.
    const isPrepared = typeof text === 'string' && text !== '' && Array.isArray(values) && values.length > 0
    if (!isPrepared || rest.length > 0) return null
    const query = new BeginAnd(text, values)
    query.firstText = begin
    const begun = new Promise<void>((resolve, reject) => {
      query.onFirstDone = resolve
      query.onFirstFailed = reject
    })
    const answer = new Promise<unknown>((resolve, reject) => {
      query.callback = (given, result) => {
        const error = isNone(given) && !query.isFirstDone ? new Error('BEGIN was not run') : given
        if (isNone(error)) return resolve(result)
        // Whoever ends a query before it is sent does that here, and nothing more is heard of it.
        if (!query.isPreparing) query.onFirstFailed(error)
        reject(error)
      }
    })
    return { query, answer: answer.catch(throwTraced), begun }
  }
}

/** As the client itself does. Where the promise is rejected, and not before, the stack leads back to whoever waits for it. */
function throwTraced(error: unknown): never {
  if (error instanceof Error) Error.captureStackTrace(error)
  throw error
}
