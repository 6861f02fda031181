import { connect, type Socket } from 'node:net'
import { Kafka, logLevel, Partitioners, type Producer } from 'kafkajs'

/** What the next messages meet, at brokers that are known by their addresses. */
export interface Trouble {
  /** The connection to it ends without an answer, and nothing has arrived there. */
  readonly closing: string
  /** Happens before that. */
  readonly before: () => Promise<void>
  /** Its answer comes only when the producer has asked for the leaders once more. */
  readonly slow: string
}

const PRODUCE = 0

/** Producers of kafkajs with sockets of their own, which can be had to break. */
export class TroubledProducers {
  readonly #brokers: readonly string[]
  #trouble: Trouble | null = null
  #slow: Socket | null = null
  #isClosed = false

  constructor(brokers: readonly string[]) {
    this.#brokers = brokers
  }

  readonly make = (): Producer => {
    const client = new Kafka({
      brokers: [...this.#brokers],
      logLevel: logLevel.NOTHING,
      connectionTimeout: 1_000,
      retry: { retries: 2, initialRetryTime: 50 },
      socketFactory: ({ host, port, onConnect }) =>
        this.#troubled(connect({ host, port }, onConnect), `${host}:${port}`),
    })
    const producer = client.producer({
      idempotent: true,
      maxInFlightRequests: 1,
      allowAutoTopicCreation: false,
      createPartitioner: Partitioners.DefaultPartitioner,
    })
    producer.on('producer.network.request', ({ payload: { apiName } }) => {
      if (apiName === 'Metadata' && this.#isClosed) this.#slow?.resume()
    })
    // It asks the slow one itself, which it does not do before it has its answer.
    producer.on('producer.network.request_queue_size', ({ payload: { queueSize } }) => {
      if (queueSize > 0) this.#slow?.resume()
    })
    return producer
  }

  /** From the next messages on, once. */
  meet(trouble: Trouble): void {
    this.#trouble = trouble
    this.#slow = null
    this.#isClosed = false
  }

  #troubled(socket: Socket, broker: string): Socket {
    const write = socket.write.bind(socket)
    const troubled = (bytes: Buffer, encoding: BufferEncoding): boolean => {
      const trouble = bytes.readInt16BE(4) === PRODUCE && !this.#isClosed ? this.#trouble : null
      if (trouble?.closing === broker) {
        void this.#close(socket, trouble)
        return true
      }
      if (trouble?.slow === broker) this.#slow = socket.pause()
      return write(bytes, encoding)
    }
    return Object.assign(socket, { write: troubled })
  }

  async #close(socket: Socket, { before }: Trouble): Promise<void> {
    await before()
    this.#isClosed = true
    socket.destroy()
    // As if the broker had said goodbye.
    socket.emit('end')
  }
}
