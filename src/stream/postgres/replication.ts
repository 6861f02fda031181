import type { Clock } from '../../runtime/clock.ts'
import { CommitpostError } from '../../runtime/errors.ts'
import type { LogListener, OpenLog } from '../../store/stream-store.ts'
import { MessageCutter } from './message-cutter.ts'
import { PgoutputDecoder } from './pgoutput.ts'

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

const FEEDBACK_EVERY_MS = 5_000
/** How often in the time that the server waits for a sign of life it gets one. */
const FEEDBACKS_PER_TIMEOUT = 4

/** Begins to read the log. Resolves once the server sends it. */
export async function readLog(
  client: ReplicationClient,
  clock: Clock,
  request: ReadRequest,
  listener: LogListener,
): Promise<OpenLog> {
  const reading = new CopyBoth(
    client,
    clock,
    { ...request, tellEveryMs: await tellEveryMs(client) },
    listener,
  )
  await reading.begun
  return reading
}

/** Well within the server's `wal_sender_timeout`, which may be 0 for none: a handler's pace has nothing to do with it. */
async function tellEveryMs(client: ReplicationClient): Promise<number> {
  const { rows } = await client.query("select setting from pg_settings where name = 'wal_sender_timeout'")
  const timeoutMs = Number(rows[0]?.['setting'])
  return timeoutMs > 0 ? Math.min(FEEDBACK_EVERY_MS, timeoutMs / FEEDBACKS_PER_TIMEOUT) : FEEDBACK_EVERY_MS
}

const XLOG_DATA = 0x77
const KEEPALIVE = 0x6b
const DATA_HEADER_BYTES = 25
const REPLY_REQUESTED_AT = 17
const STATUS_BYTES = 34
const STATUS = 0x72
const MICROSECONDS = 1_000n
const EPOCH_MS = BigInt(Date.UTC(2000, 0, 1))

/** START_REPLICATION as a query of its own kind, which `pg` hands every message of the server. */
export class CopyBoth implements OpenLog {
  readonly #client: ReplicationClient
  readonly #clock: Clock
  readonly #listener: LogListener
  readonly #decoder: PgoutputDecoder
  readonly #text: string
  readonly #tellEveryMs: number
  readonly #over = new AbortController()
  /** Asked for every message: a signal takes longer to answer. */
  #isOver = false
  #confirmed: bigint
  #begin: () => void = () => {}
  #refuse: (error: unknown) => void = () => {}
  /** Resolves once the server has begun, rejects if it refuses. */
  readonly begun: Promise<void>

  constructor(
    client: ReplicationClient,
    clock: Clock,
    request: ReadRequest & { readonly tellEveryMs: number },
    listener: LogListener,
  ) {
    this.#client = client
    this.#clock = clock
    this.#listener = listener
    this.#confirmed = request.from
    this.#text = startText(request)
    this.#tellEveryMs = request.tellEveryMs
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
    this.#copyData(own, 0, own.length)
    this.#decoder.ended(own)
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
      cutter.take(chunk)
      this.#decoder.ended(chunk)
    })
  }

  #copyData(bytes: Buffer, start: number, end: number): void {
    if (this.#isOver) return
    const kind = bytes[start]
    try {
      if (kind === XLOG_DATA) this.#decoder.decode(bytes, start + DATA_HEADER_BYTES, end)
      else if (kind === KEEPALIVE && bytes[start + REPLY_REQUESTED_AT] === 1) this.#tell()
    } catch (error) {
      this.#end(error)
      this.#client.connection.stream.destroy()
    }
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

  pause(): void {
    this.#client.connection.stream.pause()
  }

  resume(): void {
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

  /** A paused socket brings no question of the server's either: it is told without being asked. */
  async #keepTelling(): Promise<void> {
    while (!this.#isOver) {
      this.#tell()
      await this.#clock.sleep(this.#tellEveryMs, this.#over.signal)
    }
  }

  #tell(): void {
    if (!this.#isOver) {
      this.#client.connection.sendCopyFromChunk(statusOf(this.#confirmed, this.#clock.now()))
    }
  }

  #end(error: unknown): void {
    if (this.#isOver) return
    this.#isOver = true
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

/** Written, flushed and applied are the same place: what was handled and recorded. */
function statusOf(lsn: bigint, now: Date): Buffer {
  const status = Buffer.alloc(STATUS_BYTES)
  status[0] = STATUS
  status.writeBigUInt64BE(lsn, 1)
  status.writeBigUInt64BE(lsn, 9)
  status.writeBigUInt64BE(lsn, 17)
  status.writeBigInt64BE((BigInt(now.getTime()) - EPOCH_MS) * MICROSECONDS, 25)
  return status
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
