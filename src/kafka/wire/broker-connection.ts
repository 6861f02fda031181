import net from 'node:net'
import tls from 'node:tls'
import type { Api, BrokerAddress } from './requests.ts'
import { WireConnectionError } from './wire-error.ts'

/** How to reach a broker. */
export interface ConnectionOptions {
  readonly clientId: string
  /** Null for a connection that anybody may read. */
  readonly ssl: tls.ConnectionOptions | null
  readonly connectWithinMs: number
}

const LENGTH_BYTES = 4
/** Length, which request, its version, its number, and the length of the client's name. */
const HEAD_BYTES = 14

interface Waiting {
  resolve(response: Buffer): void
  reject(error: Error): void
}

/** One connection to one broker. It answers in the order of the questions. */
export class BrokerConnection {
  readonly #socket: net.Socket
  readonly #clientId: Buffer
  readonly #waiting: Waiting[] = []
  #received: Buffer = Buffer.alloc(0)
  #number = 0
  #ended: Error | null = null

  private constructor(socket: net.Socket, clientId: string) {
    this.#socket = socket
    this.#clientId = Buffer.from(clientId)
    socket.on('data', (bytes) => this.#take(bytes))
    socket.on('error', (error) => this.#end(error))
    socket.on('close', () => this.#end(new WireConnectionError('The connection to Kafka was closed')))
  }

  /** Connects. */
  static open(address: BrokerAddress, options: ConnectionOptions): Promise<BrokerConnection> {
    const { host, port } = address
    const { ssl, connectWithinMs, clientId } = options
    return new Promise((resolve, reject) => {
      const fail = ({ message }: { readonly message: string }): void => {
        socket.destroy()
        reject(new WireConnectionError(`The broker at ${host}:${port} cannot be reached: ${message}`))
      }
      const isLate = (): void => fail({ message: `no answer within ${connectWithinMs} ms` })
      const ready = (): void => {
        socket.setTimeout(0)
        socket.off('timeout', isLate)
        socket.off('error', fail)
        resolve(new BrokerConnection(socket, clientId))
      }
      const servername = net.isIP(host) === 0 ? { servername: host } : {}
      const socket =
        ssl === null
          ? net.connect({ host, port, noDelay: true }, ready)
          : tls.connect({ host, port, ...servername, ...ssl }, ready)
      if (ssl !== null) socket.setNoDelay(true)
      socket.once('error', fail)
      socket.setTimeout(connectWithinMs)
      socket.once('timeout', isLate)
    })
  }

  /** False once it has ended. */
  get isOpen(): boolean {
    return this.#ended === null
  }

  /** Asks, and resolves with the answer. */
  ask({ key, version }: Api, body: Buffer): Promise<Buffer> {
    if (this.#ended !== null) return Promise.reject(this.#ended)
    const head = Buffer.alloc(HEAD_BYTES)
    head.writeInt32BE(HEAD_BYTES - LENGTH_BYTES + this.#clientId.length + body.length)
    head.writeInt16BE(key, 4)
    head.writeInt16BE(version, 6)
    head.writeInt32BE(this.#number, 8)
    head.writeInt16BE(this.#clientId.length, 12)
    this.#number = (this.#number + 1) % 2 ** 31
    // In one go: a request in two packets would wait for the first to be acknowledged.
    this.#socket.cork()
    this.#socket.write(head)
    this.#socket.write(this.#clientId)
    this.#socket.write(body)
    this.#socket.uncork()
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }))
  }

  /** Ends it. Whoever waits for an answer gets none. */
  close(): void {
    this.#end(new WireConnectionError('The connection to Kafka was closed here'))
    this.#socket.destroy()
  }

  #take(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes])
    while (this.#received.length >= LENGTH_BYTES) {
      const end = LENGTH_BYTES + this.#received.readInt32BE(0)
      if (this.#received.length < end) return
      // After its length comes the number of the question.
      const answer = this.#received.subarray(LENGTH_BYTES * 2, end)
      this.#received = this.#received.subarray(end)
      this.#waiting.shift()?.resolve(answer)
    }
  }

  #end(error: Error): void {
    if (this.#ended !== null) return
    this.#ended =
      error instanceof WireConnectionError
        ? error
        : new WireConnectionError(`The connection to Kafka broke: ${error.message}`)
    for (const waiting of this.#waiting.splice(0)) waiting.reject(this.#ended)
  }
}
