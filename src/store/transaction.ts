/** What a statement gave back, as far as it is used here. */
export interface QueryResult {
  readonly rows: readonly unknown[]
  readonly rowCount: number | null
  /** The command the server says it ran, where the client tells: COMMIT in a failed transaction runs ROLLBACK. */
  readonly command?: string
}

/**
 * The caller's open transaction, by shape: a client of `pg` fits as it is, any other through a few lines. Statements
 * that run on it take text parameters only and return plain columns, so that no driver's type mapping matters.
 */
export interface Transaction {
  query(text: string, params?: readonly unknown[]): Promise<QueryResult>
  /** Only pools have it: it makes passing `pg.Pool` in place of its client, the classic mistake, an error of types. */
  readonly totalCount?: never
}
