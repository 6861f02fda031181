import { isNone, type StatementConfig, twoStatementsOf } from './two-statements.ts'

/** Sends a statement that has values right after one that returns no rows. Without BEGIN, the two are one transaction. */
export type SendAfter = (first: string, statement: StatementConfig) => Promise<unknown>

/** The way to send two statements in one round trip; null where this client has none. */
export function sendAfter(client: object): SendAfter | null {
  const Both = twoStatementsOf(client)
  if (Both === null) return null
  return (first, statement) =>
    new Promise((resolve, reject) => {
      const query = new Both(statement)
      query.firstText = first
      query.callback = (error, result) => (isNone(error) ? resolve(result) : reject(error))
      ;(client as { query(sent: object): unknown }).query(query)
    })
}
