import { withDeadline } from '../../runtime/abort.ts'
import type { Clock } from '../../runtime/clock.ts'
import { DeadlineExceededError } from '../../runtime/errors.ts'
import { BrokerConnection, type ConnectionOptions } from './broker-connection.ts'
import { untilReady } from './not-yet.ts'
import { API, type Api, type BrokerAddress, metadataRequest, readMetadata } from './requests.ts'
import { authenticate, type SaslCredentials } from './sasl.ts'
import { WireConnectionError, WireError } from './wire-error.ts'

/** How to reach the brokers. */
export interface ClusterOptions extends ConnectionOptions {
  readonly brokers: readonly BrokerAddress[]
  /** Null where nobody is asked who they are. */
  readonly sasl: SaslCredentials | null
  readonly clock: Clock
}

/** After this the brokers are asked again: a topic may have got more partitions. */
const METADATA_GOOD_MS = 300_000
const NO_LEADER = 5

interface KnownTopic {
  readonly leaders: readonly number[]
  readonly askedMs: number
}

/** The brokers, and which of them leads what. Connections that ended while nobody used them are opened anew. */
export class Cluster {
  readonly #options: ClusterOptions
  readonly #topics = new Map<string, KnownTopic>()
  readonly #connections = new Map<string, BrokerConnection>()
  #isClosed = false
  /** Who answered last. */
  #answered: BrokerAddress | null = null
  #brokers: ReadonlyMap<number, BrokerAddress> = new Map()

  constructor(options: ClusterOptions) {
    this.#options = options
  }

  /**
   * The answer of whichever broker gives one, the one that did so last before the others. One that takes connections and
   * answers nothing, as a process that is suspended does, is passed over.
   */
  async ask(api: Api, body: Buffer): Promise<Buffer> {
    let failure: unknown = new WireConnectionError('There is no broker')
    const { brokers } = this.#options
    for (const address of this.#answered === null ? brokers : [this.#answered, ...brokers]) {
      try {
        const answer = await this.#askOne(address, api, body)
        this.#answered = address
        return answer
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  /** A connection to the broker of this number. */
  async leader(id: number): Promise<BrokerConnection> {
    const address = this.#brokers.get(id)
    if (address === undefined) throw new WireConnectionError(`Nobody knows where broker ${id} is`)
    return this.#to(address)
  }

  /**
   * Which broker leads each partition of a topic.
   * @throws WireError where they do not have the topic, or no leader for a part of it.
   */
  async leaders(name: string): Promise<readonly number[]> {
    const { clock } = this.#options
    const known = this.#topics.get(name)
    if (known !== undefined && clock.monotonicMs() - known.askedMs < METADATA_GOOD_MS) return known.leaders
    return untilReady(clock, () => this.#askForLeaders(name))
  }

  /** Asks the brokers anew who leads what. */
  forget(): void {
    this.#topics.clear()
  }

  /** Ends all connections, for good. */
  close(): void {
    this.#isClosed = true
    for (const connection of this.#connections.values()) connection.close()
    this.#connections.clear()
  }

  async #to(address: BrokerAddress): Promise<BrokerConnection> {
    const name = nameOf(address)
    const known = this.#connections.get(name)
    if (known?.isOpen === true) return known
    const connection = await BrokerConnection.open(address, this.#options)
    if (this.#isClosed) {
      connection.close()
      throw new WireConnectionError('The producer was disconnected')
    }
    this.#connections.set(name, connection)
    if (this.#options.sasl !== null) await authenticate(connection, this.#options.sasl)
    return connection
  }

  async #askOne(address: BrokerAddress, api: Api, body: Buffer): Promise<Buffer> {
    const { clock, connectWithinMs } = this.#options
    const deadline = { clock, timeoutMs: connectWithinMs, what: `The broker at ${nameOf(address)}` }
    try {
      return await withDeadline(deadline, async () => (await this.#to(address)).ask(api, body))
    } catch (error) {
      // Whatever is asked next would wait behind the question that was not answered.
      if (error instanceof DeadlineExceededError) this.#connections.get(nameOf(address))?.close()
      throw error
    }
  }

  async #askForLeaders(name: string): Promise<readonly number[]> {
    const askedMs = this.#options.clock.monotonicMs()
    const { brokers, leaders } = readMetadata(await this.ask(API.metadata, metadataRequest(name)), name)
    if (!leaders.every((leader) => brokers.has(leader))) throw new WireError(NO_LEADER, `topic "${name}"`)
    this.#brokers = brokers
    this.#topics.set(name, { leaders, askedMs })
    return leaders
  }
}

function nameOf({ host, port }: BrokerAddress): string {
  return `${host}:${port}`
}
