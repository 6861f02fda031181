import type { Clock } from '../../runtime/clock.ts'
import { lsnText } from '../../stream/postgres/replication.ts'
import type {
  GateAnswer,
  LoggedEvent,
  LogSession,
  ParkedEvent,
  StreamBeat,
  StreamHeld,
  StreamLease,
  StreamProgress,
  StreamStore,
} from '../stream-store.ts'
import { assertStreamable } from './assert-streamable.ts'
import { type PgPool, type PgPoolClient, rawQuery, withClient } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { PostgresLogSession } from './log-session.ts'
import { parkEvents } from './park-events.ts'
import { dropSlot } from './slot.ts'
import { streamGate } from './stream-gate.ts'
import { beatStream, recordProgress, releaseStream, takeStream } from './stream-lease.ts'

const slotSql = (schema: QuotedSchema): string => `
  select t.slot from ${schema}.outbox_stream t where t.subscription_id = $1`

/** Reads the log of a PostgreSQL server: each method is one operation of this folder. */
export class PostgresStreamStore implements StreamStore {
  readonly #pool: PgPool
  readonly #appPool: PgPool
  readonly #schema: QuotedSchema
  readonly #clock: Clock

  /** `appPool` is the application's: connections to the log have its settings. */
  constructor(pool: PgPool, appPool: PgPool, schema: QuotedSchema, clock: Clock) {
    this.#pool = pool
    this.#appPool = appPool
    this.#schema = schema
    this.#clock = clock
  }

  assertStreamable(): Promise<void> {
    return assertStreamable(this.#pool, this.#appPool, this.#schema)
  }

  takeStream(
    subscriptionId: number,
    workerId: string,
    leaseMs: number,
  ): Promise<StreamLease | StreamHeld | 'retired'> {
    return this.#on((client) => takeStream(client, this.#schema, subscriptionId, workerId, leaseMs))
  }

  beatStream(lease: StreamLease, leaseMs: number): Promise<StreamBeat> {
    return this.#on((client) => beatStream(client, this.#schema, lease, leaseMs))
  }

  streamGate(
    lease: StreamLease,
    keys: readonly string[],
    doubtful: readonly LoggedEvent[],
  ): Promise<GateAnswer> {
    return this.#on((client) => streamGate(client, this.#schema, lease, keys, doubtful))
  }

  parkEvents(lease: StreamLease, events: readonly ParkedEvent[]): Promise<boolean> {
    return this.#on((client) => parkEvents(client, this.#schema, lease, events))
  }

  recordProgress(lease: StreamLease, progress: StreamProgress): Promise<boolean> {
    const written = { ...progress, lsn: lsnText(progress.lsn) }
    return this.#on((client) => recordProgress(client, this.#schema, lease, written))
  }

  releaseStream(lease: StreamLease): Promise<void> {
    return this.#on((client) => releaseStream(client, this.#schema, lease))
  }

  async forgetLog(subscriptionId: number): Promise<void> {
    await this.#on(async (client) => {
      const [row] = await rawQuery(client, slotSql(this.#schema), [subscriptionId])
      if (row?.[0] !== undefined && row[0] !== null) {
        await dropSlot(client, row[0])
      }
    })
  }

  openLog(lease: StreamLease): LogSession {
    return new PostgresLogSession(this.#pool, this.#appPool, this.#schema, this.#clock, lease)
  }

  #on<Result>(work: (client: PgPoolClient) => Promise<Result>): Promise<Result> {
    return withClient(this.#pool, work)
  }
}
