import type { ClaimedDelivery, Settled } from '../../delivery/delivery.ts'
import type { OutboxEvent } from '../../event/event.ts'
import type { Clock } from '../../runtime/clock.ts'
import type {
  ClaimRequest,
  HeartbeatReport,
  HeartbeatRequest,
  HeldLane,
  LaneClaimRequest,
  LaneDelivery,
  LaneStore,
  RecoverReport,
  SettleReport,
  TakenLanes,
} from '../queue-store.ts'
import type { WakeSubscription, WorkerStore } from '../store.ts'
import type { RegisteredSubscription, SubscriptionDefinition } from '../subscription-store.ts'
import { advanceJoining } from './advance-joining.ts'
import { claim } from './claim.ts'
import { claimLanes } from './claim-lanes.ts'
import { claimSuspect } from './claim-suspect.ts'
import { withClient } from './client.ts'
import { heartbeat } from './heartbeat.ts'
import type { QuotedSchema } from './identifiers.ts'
import { leave } from './leave.ts'
import { LowWater } from './low-water.ts'
import { assertSchemaCurrent } from './migration-status.ts'
import { readSubscriptions } from './read-subscriptions.ts'
import { recover } from './recover.ts'
import { register } from './register.ts'
import { releaseLanes } from './release-lanes.ts'
import { setPaused } from './set-paused.ts'
import { settle } from './settle.ts'
import type { WorkerPool } from './sibling-pool.ts'
import { takeLanes } from './take-lanes.ts'
import { takeUnmatched } from './take-unmatched.ts'
import { unpark } from './unpark.ts'
import { WakeListener } from './wake-channel.ts'

/** One worker's view of the database: each method is one operation of this folder on the worker's own connections. */
export class PostgresWorkerStore implements WorkerStore {
  readonly #connections: WorkerPool
  readonly #schema: QuotedSchema
  readonly #clock: Clock
  readonly #lowWaters = new Map<number, LowWater>()

  constructor(connections: WorkerPool, schema: QuotedSchema, clock: Clock) {
    this.#connections = connections
    this.#schema = schema
    this.#clock = clock
  }

  get #pool() {
    return this.#connections.pool
  }

  assertReady(): Promise<void> {
    return assertSchemaCurrent(this.#pool, this.#schema)
  }

  async claim(request: ClaimRequest): Promise<readonly ClaimedDelivery[]> {
    const bound = await this.#lowWater(request.subscriptionId).next()
    return claim(this.#pool, this.#schema, request, bound)
  }

  async claimLanes(request: LaneClaimRequest): Promise<readonly LaneDelivery[]> {
    const bound = await this.#lowWater(request.subscriptionId).next()
    return claimLanes(this.#pool, this.#schema, request, bound)
  }

  claimSuspect(
    request: ClaimRequest & { readonly lanes?: readonly HeldLane[] },
  ): Promise<LaneDelivery | null> {
    return claimSuspect(this.#pool, this.#schema, request)
  }

  settle(batch: readonly Settled[]): Promise<SettleReport> {
    return settle(this.#pool, this.#schema, batch)
  }

  unpark(
    subscriptionId: number,
    keys: readonly { readonly lane: number; readonly key: string }[],
  ): Promise<void> {
    return unpark(this.#pool, this.#schema, subscriptionId, keys)
  }

  heartbeat(request: HeartbeatRequest): Promise<HeartbeatReport> {
    return heartbeat(this.#pool, this.#schema, request)
  }

  recover(subscriptionIds: readonly number[], workerId?: string): Promise<RecoverReport> {
    return recover(this.#pool, this.#schema, subscriptionIds, workerId ?? null)
  }

  leave(workerId: string): Promise<void> {
    return leave(this.#pool, this.#schema, workerId)
  }

  takeLanes(request: Parameters<LaneStore['takeLanes']>[0]): Promise<TakenLanes> {
    return takeLanes(this.#pool, this.#schema, request)
  }

  releaseLanes(subscriptionId: number, workerId: string, lanes: readonly HeldLane[]): Promise<void> {
    return releaseLanes(this.#pool, this.#schema, subscriptionId, workerId, lanes)
  }

  register(definition: SubscriptionDefinition): Promise<RegisteredSubscription> {
    return register(this.#pool, this.#schema, definition)
  }

  advanceJoining(): Promise<readonly string[]> {
    return advanceJoining(this.#pool, this.#schema)
  }

  subscriptions(ids: readonly number[]): Promise<readonly RegisteredSubscription[]> {
    return withClient(this.#pool, (client) => readSubscriptions(client, this.#schema, ids))
  }

  setPaused(
    name: string,
    paused: boolean,
    operator: string,
    note: string | null = null,
  ): Promise<RegisteredSubscription> {
    return setPaused(this.#pool, this.#schema, name, paused, operator, note)
  }

  takeUnmatched(limit: number, deadLetter: boolean): Promise<readonly OutboxEvent[]> {
    return takeUnmatched(this.#pool, this.#schema, limit, deadLetter)
  }

  async listen(onWake: () => void): Promise<WakeSubscription> {
    const listener = new WakeListener(this.#pool, this.#schema, this.#clock, onWake)
    await listener.start()
    return listener
  }

  async close(): Promise<void> {
    if (this.#connections.own) await this.#pool.end()
  }

  #lowWater(subscriptionId: number): LowWater {
    const known = this.#lowWaters.get(subscriptionId)
    if (known !== undefined) return known
    const lowWater = new LowWater(this.#pool, this.#schema, subscriptionId, this.#clock)
    this.#lowWaters.set(subscriptionId, lowWater)
    return lowWater
  }
}
