import type { Clock } from '../../runtime/clock.ts'
import { CommitpostError } from '../../runtime/errors.ts'
import type { LogListener, OpenLog } from '../../store/stream-store.ts'
import { MessageCutter } from './message-cutter.ts'
import { fellSilent, type Pace, paceOf } from './pace.ts'
import { PgoutputDecoder } from './pgoutput.ts'
import { statusOf } from './status.ts'

/** The part of a `pg` connection that reading the log needs. */
export interface ReplicationSocket {
  readonly stream: ReplicationStream
  query(text: string): void
  sendCopyFromChunk(chunk: Buffer): void
  once(event: 'replicationStart', listener: () => void): unknown
}

/** Its socket. */
interface ReplicationStream {
  pause(): unknown
  resume(): unknown
  destroy(): unknown
  listeners(event: 'data'): unknown[]
  removeAllListeners(event: 'data'): unknown
  on(event: 'data', listener: (chunk: Buffer) => void): unknown
}

/** A `pg` client that was opened with `replication: 'database'`. */
export interface ReplicationClient {
  connect(): Promise<unknown>
  query(text: string): Promise<{ readonly rows: Record<string, unknown>[] }>
  query(submittable: CopyBoth): unknown
  end(): Promise<void>
  on(event: 'error', listener: (error: Error) => void): unknown
  readonly connection: ReplicationSocket
}

/** What to read, and from where. */
export interface ReadRequest {
  readonly slot: string
  readonly publication: string
  /** Messages under this prefix carry snapshots. */
  readonly prefix: string
  readonly from: bigint
}

/** A log that the server has begun to send. Whoever asked for it is told of nothing before `listen`. */
export interface BegunLog extends OpenLog {
  listen(): void
}

/** Begins to read the log. Resolves once the server sends it. */
export async function readLog(
  client: ReplicationClient,
  clock: Clock,
  request: ReadRequest,
  listener: LogListener,
): Promise<BegunLog> {
  const reading = new CopyBoth(client, clock, { ...request, ...(await paceOf(client)) }, listener)
  await reading.begun
  return reading
}

const XLOG_DATA = 0x77
const KEEPALIVE = 0x6b
const DATA_HEADER_BYTES = 25
const REPLY_REQUESTED_AT = 17

/** START_REPLICATION as a query of its own kind, which `pg` hands every message of the server. */
export class CopyBoth implements BegunLog {
  readonly #client: ReplicationClient
  readonly #clock: Clock
  readonly #listener: LogListener
  readonly #decoder: PgoutputDecoder
  readonly #text: string
  readonly #pace: Pace
  readonly #over = new AbortController()
  #isOver = false
  /** Nobody listens yet, or any more. Asked for every message: a signal takes longer to answer. */
  #isDeaf = true
  /** What came in one go with the answer that the log begins. */
  #early: Buffer[] = []
  #isPaused = false
  /** Whether anything came since it was last looked. */
  #hasHeard = false
  #confirmed: bigint
  #begin: () => void = () => {}
  #refuse: (error: unknown) => void = () => {}
  /** Resolves once the server has begun, rejects if it refuses. */
  readonly begun: Promise<void>

  constructor(client: ReplicationClient, clock: Clock, request: ReadRequest & Pace, listener: LogListener) {
    this.#client = client
    this.#clock = clock
    this.#listener = listener
    this.#confirmed = request.from
    this.#text = startText(request)
    this.#pace = request
    this.#decoder = new PgoutputDecoder({
      insert: (event) => listener.event(event),
      commit: (end) => listener.commit(end),
      message: (prefix, content, lsn) => {
        if (prefix === request.prefix) listener.mark(content, lsn)
      },
    })
    this.begun = new Promise((resolve, reject) => {
      this.#begin = resolve
      this.#refuse = reject
    })
    client.on('error', (error) => this.#end(error))
    client.query(this)
  }

  // == what pg asks of a query =====================================================================

  /** Sends it. */
  submit(connection: ReplicationSocket): void {
    connection.once('replicationStart', () => {
      this.pause()
      this.#begin()
      void this.#keepTelling()
    })
    this.#takeOver(connection.stream)
    connection.query(this.#text)
  }

  /** One message of the server, where the socket was not taken over. Its bytes are used again afterwards. */
  handleCopyData({ chunk }: { readonly chunk: Buffer }): void {
    const own = Buffer.allocUnsafeSlow(chunk.length)
    chunk.copy(own)
    this.#hasHeard = true
    this.#take(own)
  }

  /** From here on `pg` gets only what is not of the log. It has just had the end of an answer: nothing is half read. */
  #takeOver(stream: ReplicationStream): void {
    const [parse, ...others] = stream.listeners('data')
    if (typeof parse !== 'function' || others.length > 0) return
    const cutter = new MessageCutter({
      copyData: (bytes, start, end) => this.#copyData(bytes, start, end),
      other: (message) => parse.call(stream, message),
    })
    stream.removeAllListeners('data')
    stream.on('data', (chunk) => {
      this.#hasHeard = true
      cutter.take(chunk)
      this.#decoder.ended(chunk)
    })
  }

  #copyData(bytes: Buffer, start: number, end: number): void {
    if (this.#isDeaf) return this.#keep(bytes, start, end)
    const kind = bytes[start]
    try {
      if (kind === XLOG_DATA) this.#decoder.decode(bytes, start + DATA_HEADER_BYTES, end)
      else if (kind === KEEPALIVE && bytes[start + REPLY_REQUESTED_AT] === 1) this.#tell()
    } catch (error) {
      this.#breakOff(error)
    }
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    if (this.#isOver) return
    const own = Buffer.allocUnsafeSlow(end - start)
    bytes.copy(own, 0, start, end)
    this.#early.push(own)
  }

  #take(own: Buffer): void {
    this.#copyData(own, 0, own.length)
    this.#decoder.ended(own)
  }

  handleError(error: Error): void {
    this.#end(error)
  }

  /** The server ends the stream when it shuts down. */
  handleReadyForQuery(): void {
    this.#end(new CommitpostError('STORE_UNAVAILABLE', 'The server ended the log.'))
  }

  handleCommandComplete(): void {}
  handleRowDescription(): void {}
  handleDataRow(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}

  // == what the reader asks ========================================================================

  listen(): void {
    this.#isDeaf = this.#isOver
    this.resume()
    for (const own of this.#early.splice(0)) this.#take(own)
  }

  pause(): void {
    this.#isPaused = true
    this.#client.connection.stream.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#client.connection.stream.resume()
  }

  confirm(lsn: bigint): void {
    if (lsn <= this.#confirmed || this.#isOver) return
    this.#confirmed = lsn
    this.#tell()
  }

  async close(): Promise<void> {
    this.#end(null)
    this.resume()
    await this.#client.end()
  }

  /**
   * A paused socket brings no question of the server's either: it is told without being asked. One that is silent is asked
   * to answer: a connection may have ended without anybody being told.
   */
  async #keepTelling(): Promise<void> {
    const { tellEveryMs, patienceMs } = this.#pace
    let silentMs = 0
    while (!this.#isOver) {
      this.#tell(silentMs > 0)
      await this.#clock.sleep(tellEveryMs, this.#over.signal)
      // Counted and not by the clock: a process that was asleep has what came meanwhile before it.
      silentMs = this.#isPaused || this.#hasHeard ? 0 : silentMs + tellEveryMs
      this.#hasHeard = false
      if (silentMs >= patienceMs) this.#breakOff(fellSilent(silentMs))
    }
  }

  #tell(asks = false): void {
    if (this.#isOver) return
    const status = statusOf({ lsn: this.#confirmed, now: this.#clock.now(), asks })
    this.#client.connection.sendCopyFromChunk(status)
  }

  #breakOff(error: unknown): void {
    this.#end(error)
    this.#client.connection.stream.destroy()
  }

  #end(error: unknown): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#isDeaf = true
    this.#over.abort()
    this.#refuse(error)
    this.#listener.ended(error)
  }
}

function startText({ slot, publication, from }: ReadRequest): string {
  const quoted = publication.replaceAll('"', '""').replaceAll("'", "''")
  return (
    `START_REPLICATION SLOT "${slot}" LOGICAL ${lsnText(from)} ` +
    `(proto_version '1', publication_names '"${quoted}"', messages 'true', binary 'true')`
  )
}

const LOWER_BITS = 32n
const LOWER_MASK = 0xff_ff_ff_ffn

/** As the server writes it: `16/B374D848`. */
export function lsnText(lsn: bigint): string {
  return `${(lsn >> LOWER_BITS).toString(16)}/${(lsn & LOWER_MASK).toString(16)}`.toUpperCase()
}

/** Reads what `lsnText` or the server wrote. */
export function lsnOf(text: string): bigint {
  const [upper = '0', lower = '0'] = text.split('/')
  return (BigInt(`0x${upper}`) << LOWER_BITS) | BigInt(`0x${lower}`)
}
