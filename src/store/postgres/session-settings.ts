import { types } from 'node:util'
import { property } from '../../runtime/property.ts'
import {
  BEGIN,
  isStatementError,
  letKeep,
  type PgPool,
  type PgPoolClient,
  type PgQueryConfig,
  rawQuery,
} from './client.ts'
import { quoteLiteral } from './identifiers.ts'
import { type SendAfter, sendAfter } from './send-after.ts'

/** Shorter than this a time-out can end what is merely slow; a worker's own calls give up after half of it. */
const SHORTEST_TIMEOUT_MS = 60_000

// What a role or a database may have set for its other users, and what a worker works with instead: one transaction
// per statement, each with a snapshot of its own, that may write and is not cut short; and what it has committed is on disk,
// unless it says otherwise. After a crash nobody else may have what a worker has taken in order.
const NEEDED_DEFAULTS = {
  default_transaction_isolation: 'read committed',
  default_transaction_read_only: 'off',
}
const DURABILITY = 'synchronous_commit'
const TIMEOUTS = [
  'statement_timeout',
  'lock_timeout',
  'idle_in_transaction_session_timeout',
  'idle_session_timeout',
  'transaction_timeout', // PostgreSQL 17 and later
]
// From PostgreSQL 18 on the server may crash, or read the wrong partitions, when rows change that a statement is about to
// lock: it looks at them again with what the statement chooses partitions by while it runs, and then frees that. A statement
// that is planned without choosing has nothing to free. test/hazards/partition-pruning.test.ts
// Also where nothing is partitioned: it may be tomorrow, while the session is in use.
const PRUNING = 'enable_partition_pruning'
const HAS_FREED_PRUNING = `current_setting('server_version_num')::int >= 180000`
const NEEDED = new Map<string, string>([
  [PRUNING, 'off'],
  ...Object.entries(NEEDED_DEFAULTS),
  [DURABILITY, 'on'],
  ...TIMEOUTS.map((name) => [name, String(SHORTEST_TIMEOUT_MS)] as const),
])

// What is planned once and kept may have been planned while the tables were empty. These leave the planner no way that is
// good then and ruinous later: each of our look-ups has one index to go by.
const PLANNING = [
  'set session plan_cache_mode = force_generic_plan',
  'set session enable_seqscan = off',
  'set session jit = off',
  `select set_config('${PRUNING}', 'off', false) where ${HAS_FREED_PRUNING}`,
]

const list = (texts: readonly string[]): string => texts.map(quoteLiteral).join(', ')

const unfitSql = `
  select pg_backend_pid(), s.name
    from (select) always
    left join pg_settings s
      on case when s.name in (${list(Object.keys(NEEDED_DEFAULTS))})
                then s.setting not in (${list(Object.values(NEEDED_DEFAULTS))})
              when s.name = ${quoteLiteral(DURABILITY)} then s.setting = 'off'
              when s.name = ${quoteLiteral(PRUNING)} then s.setting = 'on' and ${HAS_FREED_PRUNING}
              when s.name in (${list(TIMEOUTS)}) then s.setting::bigint between 1 and ${SHORTEST_TIMEOUT_MS - 1}
              else false end`

const setSql = (scope: 'session' | 'local', name: string): string =>
  `set ${scope} ${name} = ${quoteLiteral(NEEDED.get(name) ?? '')}`

/** Sets them for the transaction it is in. Without rows, and no SET, which warns where no BEGIN was sent. */
const setQuietlySql = (names: readonly string[]): string => {
  const set = names.map((name) => `set_config('${name}', ${quoteLiteral(NEEDED.get(name) ?? '')}, true)`)
  return `select where concat(${set.join(', ')}) is null`
}

/**
 * A pool whose connections work as a worker needs, whatever their role has set. Each is asked once, when it is new.
 * A connection of the worker's own (`own`) that leads straight to the server is set for good, and keeps statements. One
 * through a pooler, or one that others use too, is left as it is: where it is not fit, every transaction says what it
 * needs.
 */
export function withSessionSettings(pool: PgPool, own: boolean): PgPool {
  const known = new WeakMap<object, PgPoolClient>()
  return {
    connect: async () => {
      const client = await pool.connect()
      const fit = known.get(client)
      if (fit !== undefined) return fit
      try {
        const made = await makeFit(client, own)
        known.set(client, made)
        return made
      } catch (error) {
        client.release(true)
        throw error
      }
    },
    end: () => pool.end(),
  }
}

async function makeFit(client: PgPoolClient, own: boolean): Promise<PgPoolClient> {
  const rows = await rawQuery(client, unfitSql, [])
  const unfit = rows.flatMap(([, name]) => (name === null || name === undefined ? [] : [name]))
  if (own && String(property(client, 'processID')) === rows[0]?.[0]) {
    await client.query([...unfit.map((name) => setSql('session', name)), ...PLANNING].join('; '))
    letKeep(client)
    return client
  }
  if (unfit.length === 0) return client
  // BEGIN says the rest.
  const local = unfit.filter((name) => !Object.hasOwn(NEEDED_DEFAULTS, name))
  const opening = [BEGIN, ...local.map((name) => setSql('local', name))].join('; ')
  return new TransactionalClient(client, opening, local.length < unfit.length ? null : setQuietlySql(local))
}

/** Runs every statement in a transaction that says itself what it needs, so that nothing is left in the session. */
class TransactionalClient implements PgPoolClient {
  readonly #client: PgPoolClient
  readonly #opening: string
  readonly #settings: string | null
  readonly #sendAfter: SendAfter | null
  #isOpen = false

  /** `settings` say what `opening` does, where that needs no BEGIN: they go with a statement, and cost no round trip. */
  constructor(client: PgPoolClient, opening: string, settings: string | null) {
    this.#client = client
    this.#opening = opening
    this.#settings = settings
    this.#sendAfter = types.isProxy(client) ? null : sendAfter(client)
  }

  readonly query = (async (statement: string | PgQueryConfig, values?: unknown[]): Promise<unknown> => {
    if (statement === BEGIN) {
      this.#isOpen = true
      return this.#client.query(this.#opening)
    }
    if (statement === 'commit' || statement === 'rollback') this.#isOpen = false
    else if (!this.#isOpen) return this.#sendAlone(statement, values)
    return this.#send(statement, values)
  }) as PgPoolClient['query']

  release(destroy?: boolean): void {
    this.#isOpen = false
    this.#client.release(destroy)
  }

  on(event: 'error', listener: (error: Error) => void): unknown {
    return this.#client.on?.(event, listener)
  }

  removeListener(event: 'error', listener: (error: Error) => void): unknown {
    return this.#client.removeListener?.(event, listener)
  }

  #sendAlone(statement: string | PgQueryConfig, values?: unknown[]): Promise<unknown> {
    const hasValues = typeof statement === 'object' && statement.values.length > 0
    if (!hasValues || this.#settings === null || this.#sendAfter === null) {
      return this.#inTransaction(() => this.#send(statement, values))
    }
    return this.#sendAfter(this.#settings, statement)
  }

  async #inTransaction(work: () => Promise<unknown>): Promise<unknown> {
    await this.#client.query(this.#opening)
    try {
      const result = await work()
      await this.#client.query('commit')
      return result
    } catch (error) {
      if (isStatementError(error)) await this.#client.query('rollback')
      throw error
    }
  }

  #send(statement: string | PgQueryConfig, values?: unknown[]): Promise<unknown> {
    return typeof statement === 'string'
      ? this.#client.query(statement, values)
      : this.#client.query(statement)
  }
}
