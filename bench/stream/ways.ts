// The ways from the table to a no-op, and to Kafka.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { debeziumConnector } from '../../src/debezium/connector.ts'
import { subscription } from '../../src/index.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { nextTurn } from '../../src/runtime/turn.ts'
import { type ReplicationClient, readLog } from '../../src/stream/postgres/replication.ts'
import { type BenchCatalogue, benchOutbox, SCHEMA } from '../support/commitpost.ts'
import type { BenchPayload } from '../support/payload.ts'
import type { RelayReport, RelayTask } from '../support/protocol.ts'
import { startProgram } from '../support/start-program.ts'
import type { Stage } from './stage.ts'
import { until } from './stage.ts'

type Engine = 'queue' | 'stream'
type Order = 'none' | 'aggregate'
type Stop = () => Promise<void>

/** A way to a function that only counts. */
export interface NoOpWay {
  readonly name: string
  /** Resolves once whatever is committed from now on comes. */
  readonly start: (stage: Stage, onEvent: (payload: BenchPayload | null) => void) => Promise<Stop>
}

/** A way to the topic `<prefix>.order`, in a process of its own. */
export interface KafkaWay {
  readonly name: string
  /** Resolves, once whatever is committed from now on comes, with the way to stop it and to learn what it cost. */
  readonly start: (stage: Stage, prefix: string) => Promise<() => Promise<KafkaCost>>
}

/** CPU time of a Node process, in microseconds: Debezium is none. */
interface KafkaCost {
  readonly nodeMicros: number | null
}

/** The name that the bars speak of. */
export const LOG = 'commitpost log stream'

/**
 * How long a bare reader leaves the log to pile up each time. Whoever takes what comes at once is woken for every few rows,
 * which costs the server a call each: it is slower than one who is busy with events meanwhile, and no upper limit for it.
 */
export const PILE_UP_MS = [0, 2, 5] as const

/** What the server can do at most, with nothing done. The bar is against the best of them. */
export const BARE_WAYS: readonly NoOpWay[] = PILE_UP_MS.map((pauseMs) => ({
  name: `bare pgoutput reader${pauseMs === 0 ? '' : `, every ${pauseMs} ms`}`,
  start: (stage, onEvent) => readBare(stage, onEvent, pauseMs),
}))

export const NO_OP_WAYS: readonly NoOpWay[] = [
  { name: LOG, start: (stage, onEvent) => work(stage, 'stream', 'none', onEvent) },
  { name: `${LOG}, in order`, start: (stage, onEvent) => work(stage, 'stream', 'aggregate', onEvent) },
  { name: 'commitpost queue', start: (stage, onEvent) => work(stage, 'queue', 'none', onEvent) },
  {
    name: 'commitpost queue, in order',
    start: (stage, onEvent) => work(stage, 'queue', 'aggregate', onEvent),
  },
]

/**
 * It hands on what it has when its interval is over or a batch is full, so a short interval costs nothing where batches
 * fill. Its producer sends at once as ours does, and puts what is waiting into larger requests.
 */
export const TUNED = {
  'poll.interval.ms': '10',
  'max.batch.size': '8192',
  'max.queue.size': '32768',
  'producer.override.linger.ms': '0',
  'producer.override.batch.size': '524288',
}

/** As `commitpost debezium config` prints it, and set for speed. The bars are against the best of them. */
export const DEBEZIUM_WAYS: readonly KafkaWay[] = [
  { name: 'Debezium', start: (stage, prefix) => capture(stage, prefix, {}) },
  { name: 'Debezium, tuned', start: (stage, prefix) => capture(stage, prefix, TUNED) },
]

export const KAFKA_WAYS: readonly KafkaWay[] = [
  { name: LOG, start: (stage, prefix) => send(stage, 'stream', prefix) },
  { name: 'commitpost queue', start: (stage, prefix) => send(stage, 'queue', prefix) },
  ...DEBEZIUM_WAYS,
]

async function work(
  { database }: Stage,
  engine: Engine,
  order: Order,
  onEvent: (payload: BenchPayload) => void,
): Promise<Stop> {
  const on = { OrderPlaced: ({ payload }: { readonly payload: BenchPayload }) => onEvent(payload) }
  const options = { engine, order, on, batchSize: 1_000, concurrency: 100 }
  const worker = benchOutbox(database.pool).worker([subscription<BenchCatalogue, unknown>('bench', options)])
  await worker.start()
  await worker.active()
  await untilRead(database.pool, engine)
  return () => worker.stop()
}

async function send(
  { database, servers }: Stage,
  engine: Engine,
  prefix: string,
): Promise<() => Promise<KafkaCost>> {
  if (servers === null) throw new Error('there is no Kafka')
  const task: RelayTask = { url: database.url, bootstrap: servers.topics.bootstrap, engine, prefix }
  const program = startProgram<RelayReport>('relay', task)
  await program.ready
  program.tell({ type: 'go' })
  await untilRead(database.pool, engine)
  return async () => {
    program.tell({ type: 'stop' })
    return { nodeMicros: (await program.report).cpuMicros }
  }
}

/** Asked of the server: an observer would be told of every event, and most workers have none. */
async function untilRead(pool: pg.Pool, engine: Engine): Promise<void> {
  const reading = `select 1 from pg_replication_slots r join ${SCHEMA}.outbox_stream t on t.slot = r.slot_name where r.active and t.lsn is not null`
  await until(async () => engine === 'queue' || (await pool.query(reading)).rowCount === 1)
}

/** Every row is taken from the socket, and nothing is done with it. */
async function readBare(
  { database }: Stage,
  onEvent: (payload: null) => void,
  pauseMs: number,
): Promise<Stop> {
  const { rows } = await database.pool.query<{ lsn: string; publication: string }>(
    `select (pg_create_logical_replication_slot('bare', 'pgoutput')).lsn::text as lsn, ${SCHEMA}.outbox_publication() as publication`,
  )
  const options = { connectionString: database.url, replication: 'database' }
  const client = new pg.Client(options) as unknown as ReplicationClient
  await client.connect()
  const request = { slot: 'bare', publication: rows[0]?.publication ?? '', prefix: 'bare', from: 0n }
  let isPilingUp = pauseMs === 0
  const letPileUp = async (): Promise<void> => {
    isPilingUp = true
    // All that has piled up is read first, and not only the chunk with the event that called this.
    await nextTurn()
    log.pause()
    await sleep(pauseMs)
    log.resume()
    isPilingUp = false
  }
  const log = await readLog(client, systemClock, request, {
    event: () => {
      onEvent(null)
      if (!isPilingUp) void letPileUp()
      return false
    },
    commit: (lsn) => log.confirm(lsn),
    mark: () => undefined,
    ended: () => undefined,
  })
  log.listen()
  return () => log.close()
}

async function capture(
  { database, servers }: Stage,
  prefix: string,
  settings: Readonly<Record<string, string>>,
): Promise<() => Promise<KafkaCost>> {
  if (servers === null) throw new Error('there is no Kafka Connect')
  const { hostname, port, username, password, pathname } = new URL(database.url)
  const { name, config } = debeziumConnector({
    engine: 'postgres',
    name: prefix,
    host: hostname,
    port: Number(port),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: pathname.slice(1),
    schema: SCHEMA,
    topicPrefix: prefix,
    payload: 'json',
    key: 'aggregate-id',
    existing: false,
    publication: 'filtered',
    bootstrap: '',
    serverId: 1,
  })
  await servers.connect.register(name, { ...config, ...settings })
  const active = 'select 1 from pg_replication_slots where slot_name = $1 and active'
  await until(async () => (await database.pool.query(active, [config['slot.name']])).rowCount === 1)
  return async () => {
    await servers.connect.unregister(name)
    await database.pool.query(`drop publication if exists ${config['publication.name']}`)
    return { nodeMicros: null }
  }
}
