import type pg from 'pg'
import type { PgPool, PgPoolClient, PgQueryConfig } from '../../src/store/postgres/client.ts'

/** A statement that was sent. */
export interface Sent {
  readonly text: string
  readonly values: readonly unknown[]
  /** The name of a prepared statement, had there been one. */
  readonly name: unknown
}

/** A place where a worker is stopped. */
export interface Hold {
  /** Resolves when the worker stands there. */
  readonly reached: Promise<void>
  /** Lets it go on. */
  go(): void
}

interface Pending {
  readonly pattern: RegExp
  reach(): void
  readonly gone: Promise<void>
}

/** A pool that remembers every statement and stops before those it is told to. */
export class SteppingPool implements PgPool {
  readonly sent: Sent[] = []
  /** What is sent instead of a statement: for a variant without its cure. */
  rewrite: (text: string) => string = (text) => text
  readonly #pool: pg.Pool
  readonly #holds: Pending[] = []
  #out = 0
  #whenIdle: (() => void)[] = []

  constructor(pool: pg.Pool) {
    this.#pool = pool
    pool.on('error', () => undefined)
  }

  /** Stops, once, before the next statement that matches. */
  holdBefore(pattern: RegExp): Hold {
    let reach = (): void => undefined
    let go = (): void => undefined
    const reached = new Promise<void>((resolve) => {
      reach = resolve
    })
    const gone = new Promise<void>((resolve) => {
      go = resolve
    })
    this.#holds.push({ pattern, reach, gone })
    return { reached, go }
  }

  /** The last statement that matches. */
  lastSent(pattern: RegExp): Sent {
    const found = this.sent.findLast(({ text }) => pattern.test(text))
    if (found === undefined) throw new Error(`nothing sent matches ${pattern.source}`)
    return found
  }

  /** Resolves when nothing is under way: what a worker does behind a claim is done. */
  async idle(): Promise<void> {
    while (this.#out > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve))
  }

  async connect(): Promise<PgPoolClient> {
    this.#out += 1
    const client = await this.#pool.connect().catch((error: unknown) => {
      this.#given()
      throw error
    })
    const query = async (first: string | PgQueryConfig, values?: unknown[]): Promise<unknown> => {
      await this.#note(first, values)
      if (typeof first === 'string') return client.query(first, values)
      return client.query({ ...first, text: this.rewrite(first.text) })
    }
    const release = (destroy?: boolean): void => {
      client.release(destroy)
      this.#given()
    }
    return { query: query as PgPoolClient['query'], release }
  }

  #given(): void {
    this.#out -= 1
    if (this.#out === 0) for (const resolve of this.#whenIdle.splice(0)) resolve()
  }

  end(): Promise<void> {
    return this.#pool.end()
  }

  async #note(first: string | PgQueryConfig, values: unknown[] | undefined): Promise<void> {
    const config: Partial<PgQueryConfig> =
      typeof first === 'string' ? { text: first, values: values ?? [] } : first
    const { text = '', values: sentValues = [] } = config
    this.sent.push({ text, values: sentValues, name: (config as { readonly name?: unknown }).name })
    const index = this.#holds.findIndex(({ pattern }) => pattern.test(text))
    const [hold] = index < 0 ? [] : this.#holds.splice(index, 1)
    hold?.reach()
    await hold?.gone
  }
}
