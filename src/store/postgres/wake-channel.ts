import { createHash } from 'node:crypto'
import type { Clock } from '../../runtime/clock.ts'
import { CommitpostError } from '../../runtime/errors.ts'
import type { WakeSubscription } from '../store.ts'
import type { Transaction } from '../transaction.ts'
import { type PgPool, type PgPoolClient, withClient } from './client.ts'
import { type QuotedSchema, quoteIdentifier } from './identifiers.ts'
import { keptText } from './kept-text.ts'
import { isSessionShared } from './shared-session.ts'

const PROBE_TIMEOUT_MS = 2_000
const HEALTH_CHECK_MS = 15_000
const RECONNECT_MS = 5_000

const POLLING_INSTEAD = 'This worker polls for its work instead, as its pollMs says, until it is heard again.'

function sharedSessionError(): CommitpostError {
  return new CommitpostError(
    'NOT_LISTENING',
    'The database cannot wake this worker: a pooler in transaction mode stands between, which delivers no ' +
      'notifications. It polls for its work instead, as its pollMs says, and loses nothing. For shorter waits give ' +
      'the worker a pool that connects to the server itself; listen: false says that polling is meant.',
  )
}

/** The channel of a schema. Hashed: a channel name is an identifier and must not be cut. */
export function wakeChannel(schema: QuotedSchema): string {
  return `commitpost_${createHash('sha256').update(schema).digest('hex').slice(0, 24)}`
}

/** Wakes whoever listens. It takes a transaction id, but its commit does not wait for the disk: nothing else was written. */
export const notifySql: (schema: QuotedSchema) => string = keptText(
  (schema) => `notify ${quoteIdentifier(wakeChannel(schema))}`,
)

/** Wakes whoever listens. In a transaction of its own, never in a business transaction: NOTIFY serialises commits. */
export async function notify(pool: PgPool, schema: QuotedSchema): Promise<void> {
  await withClient(pool, (client) => client.query(notifySql(schema)))
}

/** The same through a client that has no transaction open. */
export async function notifyOn(client: Transaction, schema: QuotedSchema): Promise<void> {
  await client.query(notifySql(schema))
}

/** A client that can listen, as `pg` has it. */
interface ListeningClient extends PgPoolClient {
  on(event: 'notification' | 'error' | 'end', listener: (error: Error) => void): unknown
  unref?(): void
}

/**
 * Listens on a connection of its own and goes on listening: a lost or half-open connection is noticed and replaced.
 * Nothing depends on it: polling finds all work, listening only finds it sooner.
 */
export class WakeListener implements WakeSubscription {
  readonly #pool: PgPool
  readonly #schema: QuotedSchema
  readonly #clock: Clock
  readonly #onWake: () => void
  readonly #onDeaf: (error: unknown) => void
  readonly #stop = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #listening = false
  #isDeafnessTold = false

  /** `onDeaf` is told once, until it listens again, why nobody can wake this worker. */
  constructor(
    pool: PgPool,
    schema: QuotedSchema,
    clock: Clock,
    callbacks: { readonly onWake: () => void; readonly onDeaf: (error: unknown) => void },
  ) {
    this.#pool = pool
    this.#schema = schema
    this.#clock = clock
    this.#onWake = callbacks.onWake
    this.#onDeaf = callbacks.onDeaf
  }

  get listening(): boolean {
    return this.#listening
  }

  /** Resolves when the first attempt to listen has succeeded or failed; it is repeated in the background. */
  start(): Promise<void> {
    return new Promise((started) => {
      this.#running = this.#listenForEver(started)
    })
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  async #listenForEver(started: () => void): Promise<void> {
    let isHopeless = false
    while (!this.#stop.signal.aborted && !isHopeless) {
      try {
        isHopeless = !(await this.#listenOnce(started))
      } catch (error) {
        // Whatever ends one connection, the next is tried; workers poll meanwhile.
        this.#tellDeaf(error)
      }
      this.#listening = false
      started()
      if (!isHopeless) await this.#clock.sleep(RECONNECT_MS, this.#stop.signal)
    }
  }

  /** Listens as long as the connection lasts. False, at once, where no connection can. */
  async #listenOnce(started: () => void): Promise<boolean> {
    const client = (await this.#pool.connect()) as ListeningClient
    client.unref?.() // a half-open one never answers the goodbye, and must not keep the process from ending
    const broken = new AbortController()
    client.on('error', () => broken.abort())
    client.on('end', () => broken.abort())
    try {
      // Before any LISTEN: it would stay behind in a session that others get next.
      if (await isSessionShared(this.#pool, client)) {
        this.#tellDeaf(sharedSessionError())
        return false
      }
      await this.#listenOn(client, AbortSignal.any([broken.signal, this.#stop.signal]), started)
      return true
    } finally {
      client.release(true)
    }
  }

  async #listenOn(client: ListeningClient, signal: AbortSignal, started: () => void): Promise<void> {
    const heard = new Signal()
    client.on('notification', () => {
      heard.raise()
      this.#onWake()
    })
    await client.query(`listen ${quoteIdentifier(wakeChannel(this.#schema))}`)
    while (!signal.aborted) {
      // A half-open connection looks healthy, and so does a pooler that was not found out.
      heard.lower()
      await notify(this.#pool, this.#schema)
      if (!(await this.#within(PROBE_TIMEOUT_MS, heard, signal))) {
        if (signal.aborted) return
        throw new CommitpostError(
          'NOT_LISTENING',
          `A notification of its own did not arrive. ${POLLING_INSTEAD}`,
        )
      }
      this.#listening = true
      this.#isDeafnessTold = false
      started()
      await this.#clock.sleep(HEALTH_CHECK_MS, signal)
    }
  }

  #tellDeaf(error: unknown): void {
    if (this.#isDeafnessTold || this.#stop.signal.aborted) return
    this.#isDeafnessTold = true
    this.#onDeaf(error)
  }

  async #within(ms: number, heard: Signal, signal: AbortSignal): Promise<boolean> {
    const waited = new AbortController()
    await Promise.race([heard.raised, this.#clock.sleep(ms, AbortSignal.any([signal, waited.signal]))])
    waited.abort()
    return heard.isRaised
  }
}

/** Something that happened, once, until it is lowered again. */
class Signal {
  raised: Promise<void> = Promise.resolve()
  isRaised = false
  #resolve: () => void = () => undefined

  raise(): void {
    this.isRaised = true
    this.#resolve()
  }

  lower(): void {
    this.isRaised = false
    this.raised = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }
}
