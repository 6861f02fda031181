import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** What becomes of a COMMIT whose connection is cut: it never arrives, or only the answer to it is lost. */
export type LostPart = 'request' | 'reply'

/** A TCP proxy before a PostgreSQL server that breaks what it carries, on demand. TLS is not understood. */
export interface FaultProxy extends AsyncDisposable {
  readonly port: number
  /** How many connections are open, silent ones included. */
  readonly open: number
  /** How many connections were turned away. */
  readonly refused: number
  /** How many connections got no answer. */
  readonly unanswered: number
  /** The same database, through this proxy. */
  urlOf(databaseUrl: string): string
  /** Resets every open connection. Returns how many there were. */
  cut(): number
  /** Forwards nothing more on open connections, either way, and leaves both ends in the belief that they are open. */
  silence(): number
  /** As a network that drops every packet: nothing passes, open connections stay, new ones get no answer. */
  swallow(): void
  /** Resets open connections and turns new ones away until `accept`. */
  refuse(): void
  /** Turns new connections away until `accept`. */
  refuseNew(): void
  /** Sends new connections to this server from now on, as an address that moves in a fail-over. */
  leadTo(databaseUrl: string): void
  /** Takes new connections again. What was silent or swallowed is reset: its ends learn of it now. */
  accept(): void
  /** Cuts the connection of the next COMMIT, before it reaches the server or before the answer reaches the client. */
  loseNextCommit(part: LostPart): Promise<void>
  /** Cuts the next connection on which the server says that a statement is done, before the client hears of it. */
  loseNextReply(): Promise<void>
  /** Takes back what is to be lost next. */
  loseNothing(): void
  close(): Promise<void>
}

/** Starts a proxy on a free port before the server of the given URL. */
export async function startFaultProxy(databaseUrl: string): Promise<FaultProxy> {
  const proxy = new Proxy(addressOf(databaseUrl))
  await proxy.listen()
  return proxy
}

interface Address {
  readonly host: string
  readonly port: number
}

function addressOf(databaseUrl: string): Address {
  const { hostname, port } = new URL(databaseUrl)
  return { host: hostname, port: Number(port) }
}

/** An end that is silent must not say goodbye either, which sockets otherwise do by themselves. */
const HALF_OPEN = { allowHalfOpen: true }

class Proxy implements FaultProxy {
  readonly #server: Server = createServer(HALF_OPEN, (client) => this.#serve(client))
  readonly #links = new Set<Link>()
  readonly #swallowed = new Set<Socket>()
  #newOnes: 'accept' | 'refuse' | 'swallow' = 'accept'
  #trap: Trap | null = null
  #target: Address
  refused = 0
  unanswered = 0

  constructor(target: Address) {
    this.#target = target
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get open(): number {
    return this.#links.size
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  urlOf(databaseUrl: string): string {
    const url = new URL(databaseUrl)
    url.host = `127.0.0.1:${this.port}`
    return url.href
  }

  cut(): number {
    const links = [...this.#links]
    for (const link of links) link.cut()
    return links.length
  }

  silence(): number {
    for (const link of this.#links) link.silent = true
    return this.#links.size
  }

  refuse(): void {
    this.refuseNew()
    this.cut()
  }

  swallow(): void {
    this.#newOnes = 'swallow'
    this.silence()
  }

  refuseNew(): void {
    this.#newOnes = 'refuse'
  }

  leadTo(databaseUrl: string): void {
    this.#target = addressOf(databaseUrl)
  }

  accept(): void {
    this.#newOnes = 'accept'
    for (const link of this.#links) if (link.silent) link.cut()
    for (const client of this.#swallowed) client.resetAndDestroy()
  }

  loseNextCommit(part: LostPart): Promise<void> {
    return this.#lose(part, part === 'request' ? isCommit : isCommitted)
  }

  loseNextReply(): Promise<void> {
    return this.#lose('reply', ({ type }) => type === 'C')
  }

  loseNothing(): void {
    this.#trap = null
  }

  async close(): Promise<void> {
    this.accept()
    this.cut()
    this.#server.close()
    await once(this.#server, 'close')
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #lose(part: LostPart, matches: (message: Message) => boolean): Promise<void> {
    return new Promise((sprung) => {
      this.#trap = { part, matches, sprung }
    })
  }

  #serve(client: Socket): void {
    if (this.#newOnes !== 'accept') {
      client.on('error', () => undefined)
      this.#turnAway(client)
      return
    }
    const server = connect({ ...this.#target, ...HALF_OPEN })
    const link = new Link(client, server, (part, messages) => this.#springs(part, messages))
    this.#links.add(link)
    // Not before both ends are gone: one that was left in the dark is still to be cut.
    void link.closed.then(() => this.#links.delete(link))
  }

  #turnAway(client: Socket): void {
    if (this.#newOnes === 'refuse') {
      this.refused += 1
      client.resetAndDestroy()
      return
    }
    this.unanswered += 1
    this.#swallowed.add(client)
    client.resume()
    client.once('close', () => this.#swallowed.delete(client))
  }

  #springs(part: LostPart, messages: readonly Message[]): boolean {
    const trap = this.#trap
    if (trap?.part !== part || !messages.some((message) => trap.matches(message))) return false
    this.#trap = null
    trap.sprung()
    return true
  }
}

/** What is lost next. */
interface Trap {
  readonly part: LostPart
  matches(message: Message): boolean
  sprung(): void
}

/** One client's connection and its counterpart to the server. */
class Link {
  readonly #sockets: readonly Socket[]
  /** Resolves when both ends are gone. */
  readonly closed: Promise<unknown>
  silent = false

  constructor(
    client: Socket,
    server: Socket,
    springs: (part: LostPart, messages: readonly Message[]) => boolean,
  ) {
    this.#sockets = [client, server]
    this.closed = Promise.all(
      this.#sockets.map((socket) => new Promise((gone) => socket.once('close', gone))),
    )
    const requests = new Messages(true)
    const replies = new Messages(false)
    this.#carry(client, server, (chunk) => springs('request', requests.push(chunk)))
    this.#carry(server, client, (chunk) => springs('reply', replies.push(chunk)))
  }

  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  #carry(from: Socket, to: Socket, springs: (chunk: Buffer) => boolean): void {
    from.setNoDelay(true)
    from.on('data', (chunk) => {
      if (this.silent) return
      if (springs(chunk)) this.cut()
      else to.write(chunk)
    })
    from.on('end', () => {
      if (!this.silent) to.end()
    })
    from.on('error', () => undefined)
    // A silent end that goes away leaves the other one in the dark, as a router that drops packets would.
    from.on('close', () => {
      if (!this.silent) to.destroy()
    })
  }
}

/** A message of the protocol: its type, and what follows its length. */
interface Message {
  readonly type: string
  readonly body: string
}

const STARTUP_HEAD = 4
const HEAD = 5

/** Cuts a stream of bytes into the messages of PostgreSQL's protocol. A client's first message has no type. */
class Messages {
  #rest: Buffer = Buffer.alloc(0)
  #untyped: boolean

  constructor(startsUntyped: boolean) {
    this.#untyped = startsUntyped
  }

  push(chunk: Buffer): readonly Message[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const messages: Message[] = []
    for (let message = this.#next(); message !== null; message = this.#next()) messages.push(message)
    return messages
  }

  #next(): Message | null {
    const head = this.#untyped ? STARTUP_HEAD : HEAD
    if (this.#rest.length < head) return null
    // The length counts itself, but not the type before it.
    const end = this.#rest.readUInt32BE(head - 4) + head - 4
    if (this.#rest.length < end) return null
    const type = this.#untyped ? '' : String.fromCharCode(this.#rest[0] as number)
    const body = this.#rest.toString('latin1', head, end)
    this.#rest = this.#rest.subarray(end)
    this.#untyped = false
    return { type, body }
  }
}

/** A client asks for it by a simple query, or by a statement without a name. */
function isCommit({ type, body }: Message): boolean {
  const text = type === 'P' && body.startsWith('\0') ? body.slice(1) : body
  return (type === 'Q' || type === 'P') && /^\s*commit\b/i.test(text)
}

/** The server says that it is done. */
function isCommitted({ type, body }: Message): boolean {
  return type === 'C' && body.startsWith('COMMIT\0')
}
