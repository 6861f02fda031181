import { AsyncLocalStorage } from 'node:async_hooks'
import type pg from 'pg'

/**
 * What befalls a process at a seam: it dies before it sends the statement; it dies with the reply in hand; or it lives,
 * the statement is done, and the reply is lost with its connection.
 */
export type Fault = 'crash-before' | 'crash-after' | 'outcome-unknown'

export const FAULTS: readonly Fault[] = ['crash-before', 'crash-after', 'outcome-unknown']

interface Operation {
  readonly name: string
  readonly counts: Map<string, number>
  /** The seams of statements that write, by their text. */
  readonly writes: Map<string, string>
}

const operations = new AsyncLocalStorage<Operation>()

/** Everything that is sent within belongs to the operation, whatever smaller ones it is made of. */
export function asOperation<Result>(name: string, work: () => Result): Result {
  if (operations.getStore() !== undefined) return work()
  return operations.run({ name, counts: new Map(), writes: new Map() }, work)
}

/** Methods that open a part of the store, whose methods are operations too. */
const OPENERS: ReadonlySet<string | symbol> = new Set(['openWorker', 'openExports'])

/** A store whose every method is an operation of that name. */
export function namingOperations<Store extends object>(store: Store): Store {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      return (...args: unknown[]): unknown => {
        const made = asOperation(String(name), () => Reflect.apply(member, target, args) as unknown)
        return OPENERS.has(name) ? namingOperations(made as object) : made
      }
    },
  })
}

/** A process that is dead does not come to its next line. */
export function never(): Promise<never> {
  return new Promise(() => undefined)
}

interface Trap {
  readonly seam: string
  readonly fault: Fault
  /** Called while the process waits for the reply it will not get. */
  readonly onLost: (seam: string) => Promise<void>
  sprung(): void
}

/** All connections of one process: names every statement, and lets the process die or be cut off at one of them. */
export class SeamPool {
  /** Where a process could die, in the order in which it first came there: `operation: statement`. */
  readonly seams = new Set<string>()
  dead = false
  readonly #pool: pg.Pool
  readonly #taken = new Set<pg.PoolClient>()
  readonly #traps: Trap[] = []
  /** A connection is the same to the outbox whenever it is taken: it asks each once how it is set. */
  readonly #faces = new WeakMap<pg.PoolClient, pg.PoolClient>()

  /** The pool is a careful application's: a connection that breaks ends nothing. */
  constructor(pool: pg.Pool) {
    this.#pool = pool
  }

  /** Arms the fault for the first time the process comes to that seam. Resolves when it has happened. */
  trap(seam: string, fault: Fault, onLost: Trap['onLost']): Promise<void> {
    return new Promise((sprung) => {
      this.#traps.push({ seam, fault, onLost, sprung })
    })
  }

  async connect(): Promise<pg.PoolClient> {
    if (this.dead) return never()
    const client = await this.#pool.connect()
    if (this.dead) {
      client.release(true)
      return never()
    }
    this.#taken.add(client)
    const face = this.#faces.get(client) ?? this.#watched(client)
    this.#faces.set(client, face)
    return face
  }

  /** Cuts every connection off. */
  async end(): Promise<void> {
    if (this.#pool.ending) return
    for (const client of this.#taken) cut(client)
    this.#taken.clear()
    await this.#pool.end()
  }

  #watched(client: pg.PoolClient): pg.PoolClient {
    const members: Record<PropertyKey, unknown> = {
      query: (...args: unknown[]) => this.#query(client, args),
      release: (error?: Error | boolean) => {
        if (this.#taken.delete(client)) client.release(error)
      },
    }
    return new Proxy(client, {
      get(target, name) {
        const member: unknown = Object.hasOwn(members, name)
          ? members[name]
          : Reflect.get(target, name, target)
        return typeof member === 'function' ? (member.bind(target) as unknown) : member
      },
    })
  }

  async #query(client: pg.PoolClient, args: readonly unknown[]): Promise<unknown> {
    if (this.dead) return never()
    if (isGreeting(args[0])) return this.#send(client, args)
    const seam = this.#pass(args[0])
    const trap = this.#springs(seam)
    if (trap?.fault === 'crash-before') return this.#die(trap)
    const result = await this.#send(client, args)
    if (this.dead) return never()
    if (trap?.fault === 'crash-after') return this.#die(trap)
    if (trap?.fault === 'outcome-unknown') {
      await trap.onLost(seam)
      breakOff(client)
      trap.sprung()
      throw new Error('Connection terminated unexpectedly')
    }
    return result
  }

  async #send(client: pg.PoolClient, args: readonly unknown[]): Promise<unknown> {
    try {
      const [statement, values] = args as [string, unknown[] | undefined]
      return await client.query(statement, values)
    } catch (error) {
      return this.dead ? never() : Promise.reject(error)
    }
  }

  #pass(statement: unknown): string {
    const text = textOf(statement)
    const operation = operations.getStore() ?? { name: 'outside', counts: new Map(), writes: new Map() }
    const seam = operation.writes.get(text) ?? numbered(operation, describe(text))
    // The same write again is a loop over batches or pages: how often it turns is not the same in every run.
    if (hasWrites(text)) operation.writes.set(text, seam)
    this.seams.add(seam)
    return seam
  }

  #springs(seam: string): Trap | null {
    const index = this.#traps.findIndex((trap) => trap.seam === seam)
    return index < 0 ? null : (this.#traps.splice(index, 1)[0] ?? null)
  }

  #die(trap: Trap): Promise<never> {
    this.dead = true
    void this.end()
    trap.sprung()
    return never()
  }
}

function textOf(statement: unknown): string {
  return typeof statement === 'string' ? statement : (statement as { readonly text: string }).text
}

/** A new connection is asked how it is set: part of opening it, which happens when the pool likes and is no seam. */
function isGreeting(statement: unknown): boolean {
  return /^\s*select pg_backend_pid\(\), s\.name/.test(textOf(statement))
}

function numbered({ name, counts }: Operation, what: string): string {
  const count = (counts.get(what) ?? 0) + 1
  counts.set(what, count)
  return `${name}: ${what}${count === 1 ? '' : ` (${count})`}`
}

function cut(client: pg.PoolClient): void {
  breakOff(client)
  client.release(true)
}

/** Without a goodbye, as a process that is killed. */
function breakOff(client: pg.PoolClient): void {
  const { connection } = client as unknown as {
    readonly connection: { readonly stream: { destroy(): void } }
  }
  connection.stream.destroy()
}

const WRITES = /\b(insert into|update|delete from) (?:\S+\.)?(outbox_\w+|effect)\b/g
const CALLS = /\b(outbox_(?:retry|resolve|amend|purge|(?:plan|begin|cancel)_redrive|forget|record_export))\(/
const READS = /\bfrom (?:\S+\.)?(outbox_\w+)/

function flatten(text: string): string {
  return text.toLowerCase().replaceAll(/\s+/g, ' ').trim()
}

function hasWrites(text: string): boolean {
  return flatten(text).search(WRITES) >= 0
}

/** What a statement does, in a few words that stay the same from run to run. */
function describe(text: string): string {
  const flat = flatten(text)
  const writes = [...flat.matchAll(WRITES)].map(([, verb, table]) => `${verb} ${table}`)
  if (writes.length > 0) return [...new Set(writes)].join(' + ')
  const [, call] = CALLS.exec(flat) ?? []
  if (call !== undefined) return `call ${call}`
  const [, table] = READS.exec(flat) ?? []
  if (flat.startsWith('select') && table !== undefined) return `select from ${table}`
  return /^[a-z]+(?: pg_\w+| setval)?/.exec(flat)?.[0] ?? flat
}
