import { createHash } from 'node:crypto'
import type { Clock } from '../../runtime/clock.ts'
import type { WakeSubscription } from '../store.ts'
import { type PgPool, type PgPoolClient, withClient } from './client.ts'
import { type QuotedSchema, quoteIdentifier } from './identifiers.ts'

const PROBE_TIMEOUT_MS = 2_000
const HEALTH_CHECK_MS = 15_000
const RECONNECT_MS = 5_000

/** The channel of a schema. Hashed: a channel name is an identifier and must not be cut. */
export function wakeChannel(schema: QuotedSchema): string {
  return `commitpost_${createHash('sha256').update(schema).digest('hex').slice(0, 24)}`
}

/** Wakes whoever listens. On a connection of its own, never in a business transaction: NOTIFY serialises commits. */
export async function notify(pool: PgPool, schema: QuotedSchema): Promise<void> {
  await withClient(pool, (client) => client.query(`notify ${quoteIdentifier(wakeChannel(schema))}`))
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
  readonly #stop = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #listening = false

  constructor(pool: PgPool, schema: QuotedSchema, clock: Clock, onWake: () => void) {
    this.#pool = pool
    this.#schema = schema
    this.#clock = clock
    this.#onWake = onWake
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
    while (!this.#stop.signal.aborted) {
      // Whatever ends one connection, the next is tried; workers poll meanwhile.
      await this.#listenOnce(started).catch(() => undefined)
      this.#listening = false
      started()
      await this.#clock.sleep(RECONNECT_MS, this.#stop.signal)
    }
  }

  async #listenOnce(started: () => void): Promise<void> {
    const client = (await this.#pool.connect()) as ListeningClient
    client.unref?.() // a half-open one never answers the goodbye, and must not keep the process from ending
    try {
      const broken = new AbortController()
      const heard = new Signal()
      client.on('error', () => broken.abort())
      client.on('end', () => broken.abort())
      client.on('notification', () => {
        heard.raise()
        this.#onWake()
      })
      const channel = quoteIdentifier(wakeChannel(this.#schema))
      await client.query(`listen ${channel}`)
      const signal = AbortSignal.any([broken.signal, this.#stop.signal])
      while (!signal.aborted) {
        // A pooler in transaction mode accepts LISTEN and never delivers; a half-open connection looks healthy.
        heard.lower()
        await notify(this.#pool, this.#schema)
        if (!(await this.#within(PROBE_TIMEOUT_MS, heard, signal))) return
        this.#listening = true
        started()
        await this.#clock.sleep(HEALTH_CHECK_MS, signal)
      }
    } finally {
      client.release(true)
    }
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
