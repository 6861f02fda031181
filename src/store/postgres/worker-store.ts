import type { ClaimedDelivery, Settled } from '../../delivery/delivery.ts'
import type { OpenTransaction } from '../../delivery/open-transaction.ts'
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
  ParkedKey,
  RecoverReport,
  RenewedLane,
  RenewLanesRequest,
  SettleReport,
  SuspectClaimRequest,
  TakenLanes,
} from '../queue-store.ts'
import type { PolicyRedrive, PolicyReport } from '../redrive-store.ts'
import type { WakeSubscription, WorkerStore } from '../store.ts'
import type { StreamStore } from '../stream-store.ts'
import type { RegisteredSubscription, SubscriptionDefinition } from '../subscription-store.ts'
import { advanceJoining } from './advance-joining.ts'
import { lanesWay, suspectsWay, unorderedWay } from './claim-ways.ts'
import { withClient } from './client.ts'
import { DueShare } from './due-share.ts'
import { explained } from './explained.ts'
import { forgetWorkers } from './forget-workers.ts'
import { heartbeat } from './heartbeat.ts'
import type { QuotedSchema } from './identifiers.ts'
import { identifyEvent } from './identify-event.ts'
import { LaneClaims } from './lane-claims.ts'
import { LeaseBook } from './lease-book.ts'
import { leave } from './leave.ts'
import { LowWater, type LowWaterBound } from './low-water.ts'
import { markAlone } from './mark-alone.ts'
import { assertSchemaCurrent } from './migration-status.ts'
import { openTransaction } from './open-transaction.ts'
import { readSubscriptions } from './read-subscriptions.ts'
import { recover } from './recover.ts'
import { redriveByPolicy } from './redrive-by-policy.ts'
import { type ClaimWay, RefusedRows } from './refused-rows.ts'
import { register } from './register.ts'
import { releaseLanes } from './release-lanes.ts'
import { renewLanes } from './renew-lanes.ts'
import { setPaused } from './set-paused.ts'
import { settle } from './settle.ts'
import type { WorkerPool } from './sibling-pool.ts'
import { takeLanes } from './take-lanes.ts'
import { takeUnmatched } from './take-unmatched.ts'
import { tendPartitions } from './tend-partitions.ts'
import { unpark } from './unpark.ts'
import { StrandedScan } from './unpark-stranded.ts'
import { WakeListener } from './wake-channel.ts'

/** One worker's view of the database: each method is one operation of this folder on the worker's own connections. */
export class PostgresWorkerStore implements WorkerStore {
  readonly #connections: WorkerPool
  readonly #schema: QuotedSchema
  readonly #clock: Clock
  readonly #lowWaters = new Map<number, LowWater>()
  readonly #dueShares = new Map<number, DueShare>()
  readonly #laneClaims = new Map<number, LaneClaims>()
  readonly #refusedRows = new Map<number, RefusedRows>()
  readonly #strandedScans = new Map<number, StrandedScan>()
  /** Whose rows somebody else had locked when they were to be settled. */
  readonly #locked = new WeakSet<ClaimedDelivery>()

  readonly #leases = new LeaseBook()

  readonly openStreams: () => Promise<StreamStore | null>

  constructor(
    connections: WorkerPool,
    schema: QuotedSchema,
    clock: Clock,
    openStreams: () => Promise<StreamStore | null> = async () => null,
  ) {
    this.#connections = connections
    this.openStreams = openStreams
    this.#schema = schema
    this.#clock = clock
  }

  get #pool() {
    return this.#connections.pool
  }

  get #claimPool() {
    return this.#connections.claims ?? this.#connections.pool
  }

  assertReady(): Promise<void> {
    return explained(this.#schema, 'The start of the worker', () =>
      assertSchemaCurrent(this.#pool, this.#schema),
    )
  }

  claim(request: ClaimRequest): Promise<readonly ClaimedDelivery[]> {
    return this.#claimWithin(request, (bound) =>
      unorderedWay(this.#claimPool, this.#schema, request, bound, this.#duePlaces(request)),
    )
  }

  claimLanes(request: LaneClaimRequest): Promise<readonly LaneDelivery[]> {
    const claims = this.#laneClaimsOf(request.subscriptionId)
    return this.#claimWithin(request, (bound) =>
      lanesWay(this.#claimPool, this.#schema, claims, request, bound, this.#duePlaces(request)),
    )
  }

  async claimSuspects(request: SuspectClaimRequest): Promise<readonly LaneDelivery[]> {
    const deliveries = await this.#claimAround(request, suspectsWay(this.#pool, this.#schema, request))
    this.#leases.opened(deliveries)
    return deliveries
  }

  markAlone(delivery: ClaimedDelivery): Promise<boolean> {
    return markAlone(this.#pool, this.#schema, delivery)
  }

  settle(batch: readonly Settled[]): Promise<SettleReport> {
    return settle(this.#pool, this.#schema, batch, this.#locked, this.#leases)
  }

  unpark(subscriptionId: number, keys: readonly ParkedKey[]): Promise<ReadonlyMap<string, number>> {
    return unpark(this.#pool, this.#schema, subscriptionId, keys)
  }

  heartbeat(request: HeartbeatRequest): Promise<HeartbeatReport> {
    return heartbeat(this.#pool, this.#schema, request, this.#leases)
  }

  recover(subscriptionIds: readonly number[], workerId?: string): Promise<RecoverReport> {
    return recover(this.#pool, this.#schema, subscriptionIds, workerId ?? null)
  }

  leave(workerId: string): Promise<void> {
    return leave(this.#pool, this.#schema, workerId)
  }

  forgetWorkers(): Promise<void> {
    return forgetWorkers(this.#pool, this.#schema)
  }

  tendPartitions(): Promise<number> {
    return tendPartitions(this.#pool, this.#schema)
  }

  takeLanes(request: Parameters<LaneStore['takeLanes']>[0]): Promise<TakenLanes> {
    return takeLanes(this.#pool, this.#schema, request, this.#strandedScan(request.subscriptionId))
  }

  releaseLanes(subscriptionId: number, workerId: string, lanes: readonly HeldLane[]): Promise<void> {
    return releaseLanes(this.#pool, this.#schema, subscriptionId, workerId, lanes)
  }

  renewLanes(request: RenewLanesRequest): Promise<readonly RenewedLane[]> {
    return renewLanes(this.#pool, this.#schema, request)
  }

  register(definition: SubscriptionDefinition): Promise<RegisteredSubscription> {
    return explained(this.#schema, `Registering subscription "${definition.name}"`, () =>
      register(this.#pool, this.#schema, definition),
    )
  }

  advanceJoining(): Promise<readonly string[]> {
    return advanceJoining(this.#pool, this.#schema)
  }

  openTransaction(): Promise<OpenTransaction | null> {
    return openTransaction(this.#pool, this.#schema)
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

  redriveByPolicy(subscriptionId: number, policy: PolicyRedrive): Promise<PolicyReport> {
    return redriveByPolicy(this.#pool, this.#schema, subscriptionId, policy)
  }

  async listen(onWake: () => void, onDeaf: (error: unknown) => void): Promise<WakeSubscription> {
    const listener = new WakeListener(this.#pool, this.#schema, this.#clock, { onWake, onDeaf })
    await listener.start()
    return listener
  }

  async close(): Promise<void> {
    await Promise.all([...this.#lowWaters.values()].map((lowWater) => lowWater.settled()))
    if (!this.#connections.own) return
    await Promise.all([this.#pool.end(), this.#connections.claims?.end()])
  }

  #duePlaces({ subscriptionId, limit }: ClaimRequest): number {
    const share = this.#dueShares.get(subscriptionId) ?? new DueShare()
    this.#dueShares.set(subscriptionId, share)
    return share.next(limit)
  }

  #laneClaimsOf(subscriptionId: number): LaneClaims {
    const known = this.#laneClaims.get(subscriptionId)
    if (known !== undefined) return known
    const claims = new LaneClaims(this.#claimPool, this.#schema, this.#clock)
    this.#laneClaims.set(subscriptionId, claims)
    return claims
  }

  #strandedScan(subscriptionId: number): StrandedScan {
    const known = this.#strandedScans.get(subscriptionId)
    if (known !== undefined) return known
    const scan = new StrandedScan(this.#pool, this.#schema, subscriptionId)
    this.#strandedScans.set(subscriptionId, scan)
    return scan
  }

  async #claimWithin<Delivery extends ClaimedDelivery>(
    request: ClaimRequest,
    wayOf: (bound: LowWaterBound) => ClaimWay<Delivery>,
  ): Promise<readonly Delivery[]> {
    const lowWater = this.#lowWater(request.subscriptionId)
    const deliveries = await this.#claimAround(request, wayOf(lowWater.next()))
    lowWater.claimed(deliveries.length)
    this.#leases.opened(deliveries)
    return deliveries
  }

  #claimAround<Delivery extends ClaimedDelivery>(
    { subscriptionId, limit, onRefused = () => {} }: ClaimRequest,
    way: ClaimWay<Delivery>,
  ): Promise<readonly Delivery[]> {
    const refused = this.#refusedRows.get(subscriptionId) ?? this.#newRefusedRows()
    this.#refusedRows.set(subscriptionId, refused)
    return refused.claim(limit, way, onRefused)
  }

  #newRefusedRows(): RefusedRows {
    return new RefusedRows(this.#clock, (eventId) => identifyEvent(this.#pool, this.#schema, eventId))
  }

  #lowWater(subscriptionId: number): LowWater {
    const known = this.#lowWaters.get(subscriptionId)
    if (known !== undefined) return known
    const lowWater = new LowWater(this.#pool, this.#schema, subscriptionId, this.#clock)
    this.#lowWaters.set(subscriptionId, lowWater)
    return lowWater
  }
}
