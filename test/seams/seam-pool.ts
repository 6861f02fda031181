import { AsyncLocalStorage } from 'node:async_hooks'
import type pg from 'pg'
import { type Holder, SeamClient, type Submittable, scriptOf } from './seam-client.ts'

/**
 * What befalls a process at a seam: it dies before it sends the statement; it dies with the reply in hand; or it lives,
 * the statement is done, and the reply is lost with its connection.
 */
export type Fault = 'crash-before' | 'crash-after' | 'outcome-unknown'

export const FAULTS: readonly Fault[] = ['crash-before', 'crash-after', 'outcome-unknown']

interface Operation {
  readonly name: string
  /** The smallest one that is under way within it. */
  readonly part: string
  readonly counts: Map<string, number>
  /** The seams of statements that write, by their text. */
  readonly writes: Map<string, string>
}

const operations = new AsyncLocalStorage<Operation>()

/** Everything that is sent within belongs to the operation, whatever smaller ones it is made of. */
export function asOperation<Result>(name: string, work: () => Result): Result {
  const around = operations.getStore() ?? { name, counts: new Map(), writes: new Map() }
  return operations.run({ ...around, part: name }, work)
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

type Release = pg.PoolClient['release']

/** All connections of one process: names every statement, and lets the process die or be cut off at one of them. */
export class SeamPool implements Holder {
  /** Where a process could die, in the order in which it first came there: `operation: statement`. */
  readonly seams = new Set<string>()
  /** The smallest operations that sent something at each of them. */
  readonly partsAt = new Map<string, Set<string>>()
  dead = false
  readonly #pool: pg.Pool
  readonly #taken = new Map<pg.PoolClient, Release>()
  readonly #traps: Trap[] = []

  /** The pool is a careful application's: a connection that breaks ends nothing. Only on a `SeamClient` there are seams. */
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
    // The pool gives it a new one each time it is taken.
    const release: Release = client.release.bind(client)
    this.#taken.set(client, release)
    client.release = (error) => {
      if (this.#taken.delete(client)) release(error)
    }
    if (client instanceof SeamClient) client.holder = this
    return client
  }

  /** Cuts every connection off. */
  async end(): Promise<void> {
    if (this.#pool.ending) return
    for (const [client, release] of this.#taken) {
      breakOff(client)
      release(true)
    }
    this.#taken.clear()
    await this.#pool.end()
  }

  async ask(client: SeamClient, statement: unknown, send: () => Promise<unknown>): Promise<unknown> {
    if (this.dead) return never()
    if (isGreeting(statement)) return this.#answerOf(send)
    const seam = this.#pass([textOf(statement)], operations.getStore())
    const trap = this.#springs(seam)
    if (trap?.fault === 'crash-before') return this.#die(trap)
    const result = await this.#answerOf(send)
    if (this.dead) return never()
    if (trap === null) return result
    await this.#strike(trap, client)
    throw connectionLost()
  }

  /** What it is told by the server is told to it unless something befalls the process: then all of it is done, and unheard. */
  watch(client: SeamClient, sent: Submittable): void {
    const operation = operations.getStore()
    const own = methodsOf(sent)
    let trap: Trap | null = null
    let tells: readonly string[] = []
    sent.submit = (connection) => {
      const script = scriptOf(connection, (to) => own.submit(to))
      trap = this.#springs(this.#pass(script.texts, operation))
      tells = afterCommit(script.texts)
      if (trap?.fault === 'crash-before') void this.#die(trap)
      return this.dead ? null : script.play()
    }
    sent.handleCommandComplete = (message, connection) => {
      if (this.dead || trap !== null) return
      if (tells.length > 0 && message.text === 'COMMIT') {
        trap = this.#springs(this.#pass(tells, operation))
        if (trap?.fault === 'crash-before') return void this.#die(trap)
      }
      own.handleCommandComplete(message, connection)
    }
    sent.handleError = (error, connection) => {
      if (!this.dead) own.handleError(error, connection)
    }
    sent.handleReadyForQuery = (connection) => {
      if (this.dead) return
      if (trap === null) own.handleReadyForQuery(connection)
      else void this.#strike(trap, client).then(() => own.handleError(connectionLost(), connection))
    }
  }

  /** The statement is done: the process dies with that, or never hears of it. */
  async #strike(trap: Trap, client: SeamClient): Promise<void> {
    if (trap.fault === 'crash-after') return this.#die(trap)
    await trap.onLost(trap.seam)
    breakOff(client)
    trap.sprung()
  }

  async #answerOf(send: () => Promise<unknown>): Promise<unknown> {
    try {
      return await send()
    } catch (error) {
      return this.dead ? never() : Promise.reject(error)
    }
  }

  #pass(
    texts: readonly string[],
    operation: Operation = { name: 'outside', part: 'outside', counts: new Map(), writes: new Map() },
  ): string {
    const text = texts.join(';')
    const seam = operation.writes.get(text) ?? numbered(operation, texts.map(describe).join(' + '))
    // The same write again is a loop over batches or pages: how often it turns is not the same in every run.
    if (hasWrites(text)) operation.writes.set(text, seam)
    this.seams.add(seam)
    this.partsAt.set(seam, (this.partsAt.get(seam) ?? new Set()).add(operation.part))
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

/** Its methods as it has them now. */
function methodsOf(sent: Submittable): Submittable {
  return {
    submit: sent.submit.bind(sent),
    handleCommandComplete: sent.handleCommandComplete.bind(sent),
    handleError: sent.handleError.bind(sent),
    handleReadyForQuery: sent.handleReadyForQuery.bind(sent),
  }
}

/** What goes with COMMIT in one write, and is done behind it: whoever commits goes on before. */
function afterCommit(texts: readonly string[]): readonly string[] {
  const commit = texts.findLastIndex((text) => flatten(text) === 'commit')
  return commit < 0 ? [] : texts.slice(commit + 1)
}

function connectionLost(): Error {
  return new Error('Connection terminated unexpectedly')
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

/** Without a goodbye, as a process that is killed. */
function breakOff(client: object): void {
  const { connection } = client as {
    readonly connection: { readonly stream: { destroy(): void } }
  }
  connection.stream.destroy()
}

const WRITES = /\b(insert into|update|delete from) (?:\S+\.)?(outbox_\w+|effect)\b/g
const CALLS =
  /\b(outbox_(?:publish|retry|resolve|amend|purge|(?:plan|begin|cancel)_redrive|forget|record_export))\(/
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
