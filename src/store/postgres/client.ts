import { isPoolOfClients } from '../../runtime/pool-shape.ts'
import { property } from '../../runtime/property.ts'
import { sqlState } from '../../runtime/sql-state.ts'
import { surviveLoss } from '../../runtime/survive-loss.ts'

/** A row as an array of raw text values, in the order of the select list. */
export type RawRow = readonly (string | null)[]

/** A query in the form `pg` takes: rows as arrays, values unparsed. */
export interface PgQueryConfig {
  readonly text: string
  readonly values: unknown[]
  readonly rowMode: 'array'
  readonly types: { getTypeParser(): (value: string) => string }
  /** Under this name the session keeps the statement, parsed and planned. */
  readonly name?: string
}

/** What a `pg` query resolves with, as far as it is used here. */
export interface PgResult<Row> {
  readonly rows: Row[]
  readonly rowCount: number | null
}

/** The part of a `pg` client that a worker needs. */
export interface PgClient {
  query(config: PgQueryConfig): Promise<PgResult<(string | null)[]>>
  query(text: string, values?: unknown[]): Promise<PgResult<Record<string, unknown>>>
}

/** A client taken from a pool. `release(true)` destroys the connection. */
export interface PgPoolClient extends PgClient {
  release(destroy?: boolean): void
  on?(event: 'error', listener: (error: Error) => void): unknown
  removeListener?(event: 'error', listener: (error: Error) => void): unknown
}

/** The part of `pg.Pool` that Commitpost needs. Your own pool fits; the package `pg` is never imported. */
export interface PgPool {
  connect(): Promise<PgPoolClient>
  end(): Promise<void>
  on?(event: 'error', listener: (error: Error) => void): unknown
}

/** Whether this can hand out clients. */
export function isPool(value: unknown): value is PgPool {
  return isPoolOfClients(value)
}

// Rows are mapped by hand: parsing every column to Date and JSON by default costs more than the rest of a claim.
const RAW_TYPES = { getTypeParser: () => (value: string) => value }

/** Runs one statement and returns its rows as raw text. Unnamed on purpose: its plan is never frozen. */
export async function rawQuery(
  client: PgClient,
  text: string,
  values: readonly unknown[],
): Promise<readonly RawRow[]> {
  return rowsOf(await client.query(rawConfig(text, values)))
}

function rawConfig(text: string, values: readonly unknown[]): PgQueryConfig {
  return { text, values: [...values], rowMode: 'array', types: RAW_TYPES }
}

// Taken out of the driver's result, which the garbage collector takes for alive long after it is: with the rows in it, the
// texts of every claim grew old and stayed until the whole heap was searched, a third of what a busy worker had resident.
function rowsOf(result: PgResult<(string | null)[]>): readonly RawRow[] {
  return result.rows.splice(0)
}

const keepers = new WeakSet<PgClient>()

/** From now on this client's session keeps what `keptQuery` runs. Only sound where the session is this client's alone. */
export function letKeep(client: PgClient): void {
  keepers.add(client)
}

/** Whether this client's session keeps statements: then it is the worker's alone and leads straight to the server. */
export function isKeeper(client: PgClient): boolean {
  return keepers.has(client)
}

/**
 * Runs a statement that is run again and again. To parse and plan it takes the server longer than to execute it for a few
 * events, so a session that may keep it does that once. Only for statements that no plan can spoil: see PLANNING in
 * session-settings.ts. One name stands for one text.
 */
export async function keptQuery(
  client: PgClient,
  name: string,
  text: string,
  values: readonly unknown[],
): Promise<readonly RawRow[]> {
  if (!keepers.has(client)) return rawQuery(client, text, values)
  try {
    return rowsOf(await client.query({ ...rawConfig(text, values), name: `commitpost_${name}` }))
  } catch (error) {
    // Nothing was executed, and the same answer would come for ever: this is no session that keeps things.
    if (!isOfKeeping(error)) throw error
    keepers.delete(client)
    return rawQuery(client, text, values)
  }
}

/** Whether the session has forgotten a statement (DISCARD ALL), or what it kept does not fit the tables any more. */
function isOfKeeping(error: unknown): boolean {
  const code = sqlState(error)
  return code === '26000' || (code === '0A000' && /cached plan/.test(String(property(error, 'message'))))
}

/** Runs `work` on a client of the pool; a client whose connection failed is destroyed, never handed out again. */
export async function withClient<Result>(
  pool: PgPool,
  work: (client: PgPoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  const stopListening = surviveLoss(client)
  try {
    const result = await work(client)
    client.release()
    return result
  } catch (error) {
    client.release(!isStatementError(error))
    throw error
  } finally {
    stopListening()
  }
}

/** Opens every transaction of ours: it says what it needs, because a role may have set other defaults. */
export const BEGIN = 'begin isolation level read committed read write'

/** Runs `work` in a READ COMMITTED transaction on a client of the pool. */
export async function withTransaction<Result>(
  pool: PgPool,
  work: (client: PgPoolClient) => Promise<Result>,
): Promise<Result> {
  return withClient(pool, async (client) => {
    await client.query(BEGIN)
    try {
      const result = await work(client)
      await client.query('commit')
      return result
    } catch (error) {
      if (isStatementError(error)) await client.query('rollback')
      throw error
    }
  })
}

/** True when the server refused a statement but the connection is sound: SQLSTATE outside classes 08 and 57. */
export function isStatementError(error: unknown): boolean {
  const code = sqlState(error)
  return code !== null && !code.startsWith('08') && !code.startsWith('57')
}
