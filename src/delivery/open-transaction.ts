/** A transaction that somebody has open, and that a joining subscription waits for. */
export interface OpenTransaction {
  /** The server process that has it open; null for a prepared transaction. */
  readonly pid: number | null
  /** The application name, or the name of the prepared transaction. */
  readonly name: string | null
  /** How long it has been open; null where the role may not see it (pg_read_all_stats lets it). */
  readonly seconds: number | null
}
