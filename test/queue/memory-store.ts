import type { ClaimedDelivery, DeliveryKey, Settled } from '../../src/delivery/delivery.ts'
import type { OpenTransaction } from '../../src/delivery/open-transaction.ts'
import type { OutboxEvent } from '../../src/event/event.ts'
import { DueShare } from '../../src/store/postgres/due-share.ts'
import type {
  ClaimRequest,
  HeartbeatReport,
  HeartbeatRequest,
  HeldLane,
  LaneClaimRequest,
  LaneDelivery,
  NewDeadLetter,
  ParkedKey,
  RecoverReport,
  RenewedLane,
  RenewLanesRequest,
  SettleReport,
  SuspectClaimRequest,
  TakenLanes,
} from '../../src/store/queue-store.ts'
import type { PolicyReport } from '../../src/store/redrive-store.ts'
import type { WakeSubscription, WorkerStore } from '../../src/store/store.ts'
import type { RegisteredSubscription, SubscriptionDefinition } from '../../src/store/subscription-store.ts'
import type { MemoryTables, Row } from './memory-tables.ts'

/** What a test may do around each call: wait before and after its effect, or fail it. */
export type Interpose = (operation: string, when: 'before' | 'after') => Promise<void> | void

/**
 * The ports of one worker in memory, by the rules of src/store/postgres: for timing that a database cannot step. Not a
 * store for anything else.
 */
export class MemoryStore implements WorkerStore {
  readonly openStreams = async (): Promise<null> => null
  readonly tables: MemoryTables
  readonly calls: string[] = []
  readonly batches: (readonly Settled[])[] = []
  interpose: Interpose = () => {}
  definition: SubscriptionDefinition | null = null
  joining: string[] = []
  waitsFor: OpenTransaction | null = null
  unmatched: OutboxEvent[] = []
  /** Who retired the subscription; undefined while nobody has. */
  retiredBy: string | undefined
  closed = false
  readonly #dueShare = new DueShare()

  constructor(tables: MemoryTables) {
    this.tables = tables
  }

  claim(request: ClaimRequest): Promise<readonly LaneDelivery[]> {
    return this.#run('claim', () => {
      const due = this.tables.pending(0).filter((row) => row.held && this.tables.isDue(row) && !row.suspect)
      const fresh = this.tables.pending(0).filter((row) => !row.held)
      return this.tables.lease(
        this.#pick(due, fresh, request.limit),
        request.workerId,
        () => this.tables.now + request.leaseMs,
      )
    })
  }

  claimLanes(request: LaneClaimRequest): Promise<readonly LaneDelivery[]> {
    return this.#run('claimLanes', () => {
      const lanes = this.tables.owned(request)
      const due = this.tables.due(lanes)
      const fresh = lanes.flatMap(({ lane }) => this.tables.pending(lane)).filter(({ held }) => !held)
      const blocked = [
        ...due.filter((row) => this.tables.isBlocked(row)),
        ...fresh.filter((row) => this.tables.earlierHeld(row).length > 0),
      ]
      const free = (row: Row): boolean => !blocked.includes(row)
      const picked = this.#pick(due.filter(free), fresh.filter(free), request.limit)
      for (const row of blocked) Object.assign(row, { held: true, nextRetryAtMs: Number.POSITIVE_INFINITY })
      const untilMs = (lane: number): number => this.tables.lanes[lane]?.untilMs ?? 0
      return this.tables.lease(picked, request.workerId, untilMs)
    })
  }

  claimSuspects(request: SuspectClaimRequest): Promise<readonly LaneDelivery[]> {
    return this.#run('claimSuspects', () => {
      const lanes = this.tables.lanes.length === 0 ? [{ lane: 0 }] : this.tables.owned(request)
      const suspects = lanes
        .flatMap(({ lane }) => this.tables.pending(lane))
        .filter(
          (row) =>
            row.suspect &&
            this.tables.isDue(row) &&
            !(this.tables.lanes.length > 0 && this.tables.earlierHeld(row).length > 0),
        )
        .toSorted((a, b) => Number(a.position) - Number(b.position))
        .slice(0, request.limit)
      const untilMs = (): number => this.tables.now + request.leaseMs
      const claimed = this.tables.lease(suspects, request.workerId, untilMs)
      // Only one that is marked as running alone is charged.
      for (const row of suspects) row.suspect = false
      return claimed
    })
  }

  markAlone(delivery: ClaimedDelivery): Promise<boolean> {
    return this.#run('markAlone', () => {
      const isHeld = this.tables.isLeased(delivery) && !this.tables.isLocked(delivery)
      if (isHeld) this.tables.rowOf(delivery).suspect = true
      return isHeld
    })
  }

  settle(batch: readonly Settled[]): Promise<SettleReport> {
    return this.#run('settle', () => {
      this.batches.push(batch)
      const lost: DeliveryKey[] = []
      const dead: NewDeadLetter[] = []
      const committed: DeliveryKey[] = []
      const busy = this.tables.busy(batch)
      for (const settled of batch.filter((one) => !busy.includes(one))) {
        const isCommitted =
          settled.completed === true && this.tables.rowOf(settled.delivery).status === 'DONE'
        if (isCommitted) committed.push(settled.delivery)
        else if (!this.tables.settle(settled, dead)) lost.push(settled.delivery)
      }
      return { lost, over: this.tables.over(lost), dead, committed, busy }
    })
  }

  unpark(_: number, keys: readonly ParkedKey[]): Promise<ReadonlyMap<string, number>> {
    return this.#run('unpark', () => new Map(keys.map((key) => [key.key, this.tables.unpark(key)])))
  }

  heartbeat(request: HeartbeatRequest): Promise<HeartbeatReport> {
    return this.#run('heartbeat', () => {
      this.tables.workers.set(request.workerId, this.tables.now + request.leaseMs)
      const lostLanes = request.lanes.filter(({ lane, epoch }) => {
        const row = this.tables.lanes[lane]
        if (row === undefined || String(row.epoch) !== epoch || row.untilMs <= this.tables.now) return true
        row.untilMs = this.tables.now + request.leaseMs
        return false
      })
      const lostDeliveries = request.deliveries.filter((delivery) => {
        const row = this.tables.rowOf(delivery)
        if (!this.tables.isLeased(delivery) || row.lockedUntilMs <= this.tables.now) return true
        if (!this.tables.isLocked(row)) row.lockedUntilMs = this.tables.now + request.leaseMs
        return false
      })
      const busyDeliveries = request.deliveries.filter(
        (delivery) => !lostDeliveries.includes(delivery) && this.tables.isLocked(delivery),
      )
      return { lostDeliveries, lostLanes, busyDeliveries }
    })
  }

  recover(): Promise<RecoverReport> {
    return this.#run('recover', () => {
      const lapsed = this.tables.rows.filter(
        (row) =>
          row.status === 'PROCESSING' && row.lockedUntilMs < this.tables.now && !this.tables.isLocked(row),
      )
      for (const row of lapsed) this.tables.returnLapsed(row)
      const suspects = this.tables.rows.filter(
        (row) => row.status === 'PENDING' && row.suspect && this.tables.isDue(row),
      ).length
      return {
        returned: new Map(lapsed.length === 0 ? [] : [[1, lapsed.length]]),
        dead: [],
        suspects: new Map(suspects === 0 ? [] : [[1, suspects]]),
        retired: new Map(this.retiredBy === undefined ? [] : [[1, this.retiredBy]]),
      }
    })
  }

  takeLanes(request: {
    readonly workerId: string
    readonly leaseMs: number
    readonly held: readonly HeldLane[]
    readonly unsure?: boolean
  }): Promise<TakenLanes> {
    return this.#run('takeLanes', () => {
      const fairShare = Math.ceil(
        this.tables.lanes.length / Math.max(1, this.tables.liveWorkers(request.workerId)),
      )
      const taken: HeldLane[] = []
      this.tables.lanes.forEach((row, lane) => {
        const isUnknown = row.owner === request.workerId && !request.held.some((held) => held.lane === lane)
        const isFree = row.untilMs < this.tables.now || (request.unsure === true && isUnknown)
        if (request.held.length + taken.length >= fairShare || !isFree) return
        Object.assign(row, {
          owner: request.workerId,
          untilMs: this.tables.now + request.leaseMs,
          epoch: row.epoch + 1,
        })
        if (this.tables.returnFree(this.tables.inHand(lane))) taken.push({ lane, epoch: String(row.epoch) })
        else Object.assign(row, { owner: null, untilMs: this.tables.now })
      })
      this.tables.unparkStranded()
      return { taken, fairShare, dead: [], refused: [] }
    })
  }

  renewLanes(request: RenewLanesRequest): Promise<readonly RenewedLane[]> {
    return this.#run('renewLanes', () =>
      request.lanes.flatMap(({ lane, epoch, tried }) => {
        const row = this.tables.lanes[lane]
        const isOwned =
          row !== undefined &&
          row.owner === request.workerId &&
          row.untilMs > this.tables.now &&
          BigInt(row.epoch) >= BigInt(epoch) &&
          BigInt(row.epoch) <= BigInt(tried)
        if (!isOwned) return []
        row.epoch = Number(tried) + 1
        const unknown = this.tables
          .inHand(lane)
          .filter(({ token }) => !request.tokens.includes(String(token)))
        const isBlocked = !this.tables.returnFree(unknown)
        for (const left of unknown) if (left.status === 'PENDING') left.suspect = request.suspects
        return [{ lane, epoch: String(row.epoch), isBlocked }]
      }),
    )
  }

  releaseLanes(_: number, __: string, lanes: readonly HeldLane[]): Promise<void> {
    return this.#run('releaseLanes', () => {
      for (const { lane } of lanes) Object.assign(this.tables.lanes[lane] ?? {}, { owner: null, untilMs: -1 })
    })
  }

  redriveByPolicy(): Promise<PolicyReport> {
    return this.#run('redriveByPolicy', () => ({ redriven: 0, leftToPerson: 0 }))
  }

  leave(workerId: string): Promise<void> {
    return this.#run('leave', () => void this.tables.workers.delete(workerId))
  }

  forgetWorkers(): Promise<void> {
    return this.#run('forgetWorkers', () => {})
  }

  tendPartitions(): Promise<number> {
    return this.#run('tendPartitions', () => 0)
  }

  register(definition: SubscriptionDefinition): Promise<RegisteredSubscription> {
    return this.#run('register', () => {
      this.definition = definition
      return { ...definition, id: 1, state: 'joining', paused: false, engine: 'queue' } as const
    })
  }

  advanceJoining(): Promise<readonly string[]> {
    return this.#run('advanceJoining', () => this.joining)
  }

  openTransaction(): Promise<OpenTransaction | null> {
    return Promise.resolve(this.waitsFor)
  }

  subscriptions(): Promise<readonly RegisteredSubscription[]> {
    return Promise.resolve([])
  }

  setPaused(): Promise<never> {
    return Promise.reject(new Error('not in memory'))
  }

  takeUnmatched(): Promise<readonly OutboxEvent[]> {
    return this.#run('takeUnmatched', () => this.unmatched.splice(0))
  }

  assertReady(): Promise<void> {
    return this.#run('assertReady', () => {})
  }

  listen(): Promise<WakeSubscription> {
    return Promise.resolve({ listening: false, close: async () => {} })
  }

  close(): Promise<void> {
    return this.#run('close', () => {
      this.closed = true
    })
  }

  /** Retries have their share first, and whatever the others leave. */
  #pick(due: readonly Row[], fresh: readonly Row[], limit: number): readonly Row[] {
    const places = this.#dueShare.next(limit)
    const first = due.slice(0, places)
    const rest = fresh.slice(0, limit - first.length)
    return [...first, ...rest, ...due.slice(places, limit - rest.length)]
  }

  async #run<Result>(operation: string, effect: () => Result): Promise<Result> {
    this.calls.push(operation)
    await this.interpose(operation, 'before')
    const result = effect()
    await this.interpose(operation, 'after')
    return result
  }
}
