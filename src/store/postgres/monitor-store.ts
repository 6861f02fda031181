import type {
  AlarmState,
  Figures,
  FiguresRequest,
  MonitorStore,
  MonitorTurn,
  OpenLetters,
  RoundRecord,
  TurnRequest,
  UntoldLetters,
} from '../alert-store.ts'
import type { PgPool } from './client.ts'
import { explained } from './explained.ts'
import { extendMonitorTurn } from './extend-monitor-turn.ts'
import type { QuotedSchema } from './identifiers.ts'
import { readAlarms } from './read-alarms.ts'
import { readFigures } from './read-figures.ts'
import { readOpenLetters } from './read-open-letters.ts'
import { readPosition } from './read-position.ts'
import { readUntoldLetters } from './read-untold-letters.ts'
import { readVanishedWorkers } from './read-vanished-workers.ts'
import { recordRound } from './record-round.ts'
import { siblingPool, type WorkerPool } from './sibling-pool.ts'
import { takeMonitorTurn } from './take-monitor-turn.ts'

/** It does one thing after the other, and keeps its turn meanwhile. */
const MONITOR_CONNECTIONS = 2

/** Opens the connections of one monitor, with the settings of the application's pool. */
export function openMonitor(pool: PgPool, schema: QuotedSchema): MonitorStore {
  return new PostgresMonitorStore(
    siblingPool(pool, () => undefined, MONITOR_CONNECTIONS),
    schema,
  )
}

/** The monitor's view of the database: each method is one operation of this folder on the monitor's own connections. */
export class PostgresMonitorStore implements MonitorStore {
  readonly #connections: WorkerPool
  readonly #schema: QuotedSchema

  constructor(connections: WorkerPool, schema: QuotedSchema) {
    this.#connections = connections
    this.#schema = schema
  }

  get #pool() {
    return this.#connections.pool
  }

  takeMonitorTurn(request: TurnRequest): Promise<MonitorTurn | null> {
    return this.#ask(() => takeMonitorTurn(this.#pool, this.#schema, request))
  }

  extendMonitorTurn(turn: MonitorTurn, leaseMs: number): Promise<boolean> {
    return this.#ask(() => extendMonitorTurn(this.#pool, this.#schema, turn, leaseMs))
  }

  readFigures(request: FiguresRequest): Promise<Figures> {
    return this.#ask(async () => ({
      position: await readPosition(this.#pool, this.#schema),
      subscriptions: await readFigures(this.#pool, this.#schema, request),
      vanished: await readVanishedWorkers(this.#pool, this.#schema, request.workerMissingMs),
    }))
  }

  readOpenLetters(most: number): Promise<OpenLetters> {
    return this.#ask(() => readOpenLetters(this.#pool, this.#schema, most))
  }

  readUntoldLetters(mostApart: number): Promise<UntoldLetters> {
    return this.#ask(() => readUntoldLetters(this.#pool, this.#schema, mostApart))
  }

  readAlarms(): Promise<readonly AlarmState[]> {
    return this.#ask(() => readAlarms(this.#pool, this.#schema))
  }

  recordRound(record: RoundRecord): Promise<boolean> {
    return this.#ask(() => recordRound(this.#pool, this.#schema, record))
  }

  async close(): Promise<void> {
    if (this.#connections.own) await this.#pool.end()
  }

  #ask<Result>(work: () => Promise<Result>): Promise<Result> {
    return explained(this.#schema, 'The monitor', work)
  }
}
