import type { DeliveryKey, Settled } from '../../src/delivery/delivery.ts'
import type { ManualClock } from '../../src/runtime/manual-clock.ts'
import type {
  ClaimRequest,
  HeartbeatReport,
  HeartbeatRequest,
  HeldLane,
  LaneClaimRequest,
  LaneDelivery,
  NewDeadLetter,
  RecoverReport,
  SettleReport,
} from '../../src/store/queue-store.ts'
import type { WakeSubscription, WorkerStore } from '../../src/store/store.ts'
import type {
  RegisteredSubscription,
  SubscriptionDefinition,
  UnmatchedEvent,
} from '../../src/store/subscription-store.ts'
import { eventAt } from './fakes.ts'

/** What a test may do around each call: wait before and after its effect, or fail it. */
export type Interpose = (operation: string, when: 'before' | 'after') => Promise<void> | void

/**
 * The ports of one worker in memory, by the rules of src/store/postgres: for timing that a database cannot step. Not a
 * store for anything else.
 */
export class MemoryStore extends MemoryTables implements WorkerStore {
  readonly calls: string[] = []
  readonly batches: (readonly Settled[])[] = []
  readonly workers = new Set<string>()
  interpose: Interpose = () => {}
  definition: SubscriptionDefinition | null = null
  joining: string[] = []
  unmatched: UnmatchedEvent[] = []
  closed = false

  claim(request: ClaimRequest): Promise<readonly LaneDelivery[]> {
    return this.#run('claim', () => {
      const due = this.pending(0).filter((row) => row.held && this.isDue(row) && !row.suspect)
      const fresh = this.pending(0).filter((row) => !row.held)
      const picked = [...due, ...fresh].slice(0, request.limit)
      return this.lease(picked, request.workerId, () => this.now + request.leaseMs)
    })
  }

  claimLanes(request: LaneClaimRequest): Promise<readonly LaneDelivery[]> {
    return this.#run('claimLanes', () => {
      const picked: Row[] = []
      for (const { lane } of this.owned(request)) {
        const mayGo = this.pending(lane).filter((row) => row.held && this.isDue(row) && !this.isBlocked(row))
        picked.push(...mayGo.filter((row) => !row.suspect))
        for (const row of this.pending(lane).filter(({ held }) => !held)) {
          if (this.earlierHeld(row).length === 0) picked.push(row)
          else Object.assign(row, { held: true, nextRetryAtMs: Number.POSITIVE_INFINITY })
        }
      }
      const chosen = picked.slice(0, request.limit)
      return this.lease(chosen, request.workerId, (lane) => this.lanes[lane]?.untilMs ?? 0)
    })
  }

  claimSuspect(
    request: ClaimRequest & { readonly lanes?: readonly HeldLane[] },
  ): Promise<LaneDelivery | null> {
    return this.#run('claimSuspect', () => {
      const lanes = this.lanes.length === 0 ? [{ lane: 0 }] : this.owned(request)
      const [suspect] = lanes
        .flatMap(({ lane }) => this.pending(lane))
        .filter((row) => row.suspect && this.isDue(row) && !(this.lanes.length > 0 && this.earlierHeld(row).length > 0))
      if (suspect === undefined) return null
      return this.lease([suspect], request.workerId, () => this.now + request.leaseMs)[0] ?? null
    })
  }

  settle(batch: readonly Settled[]): Promise<SettleReport> {
    return this.#run('settle', () => {
      this.batches.push(batch)
      const lost: DeliveryKey[] = []
      const dead: NewDeadLetter[] = []
      for (const { delivery, settlement } of batch) {
        if (!this.settle({ delivery, settlement }, dead)) lost.push(delivery)
      }
      return { lost, dead }
    })
  }

  unpark(_: number, keys: readonly { readonly key: string }[]): Promise<void> {
    return this.#run('unpark', () => {
      for (const row of this.rows) {
        const isParked = row.status === 'PENDING' && row.held && row.nextRetryAtMs === Number.POSITIVE_INFINITY
        if (isParked && keys.some(({ key }) => key === row.key)) row.nextRetryAtMs = this.now
      }
    })
  }

  heartbeat(request: HeartbeatRequest): Promise<HeartbeatReport> {
    return this.#run('heartbeat', () => {
      this.workers.add(request.workerId)
      const lostLanes = request.lanes.filter(({ lane, epoch }) => {
        const row = this.lanes[lane]
        if (row === undefined || String(row.epoch) !== epoch || row.untilMs <= this.now) return true
        row.untilMs = this.now + request.leaseMs
        return false
      })
      const lostDeliveries = request.deliveries.filter((delivery) => {
        const row = this.rowOf(delivery)
        const isHeld = row.status === 'PROCESSING' && String(row.token) === delivery.lease.token
        if (!isHeld || row.lockedUntilMs <= this.now) return true
        row.lockedUntilMs = this.now + request.leaseMs
        return false
      })
      return { lostDeliveries, lostLanes }
    })
  }

  recover(): Promise<RecoverReport> {
    return this.#run('recover', () => {
      const lapsed = this.rows.filter((row) => row.status === 'PROCESSING' && row.lockedUntilMs < this.now)
      for (const row of lapsed) this.returnLapsed(row)
      const suspects = this.rows.filter((row) => row.status === 'PENDING' && row.suspect && this.isDue(row)).length
      return { returned: lapsed.length, dead: [], suspects: new Map(suspects === 0 ? [] : [[1, suspects]]) }
    })
  }

  takeLanes(request: { readonly workerId: string; readonly leaseMs: number; readonly held: number }): Promise<{
    readonly taken: readonly HeldLane[]
    readonly fairShare: number
  }> {
    return this.#run('takeLanes', () => {
      this.workers.add(request.workerId)
      const fairShare = Math.ceil(this.lanes.length / this.workers.size)
      const taken: HeldLane[] = []
      this.lanes.forEach((row, lane) => {
        if (request.held + taken.length >= fairShare || row.untilMs >= this.now) return
        Object.assign(row, { owner: request.workerId, untilMs: this.now + request.leaseMs, epoch: row.epoch + 1 })
        taken.push({ lane, epoch: String(row.epoch) })
        for (const left of this.rows) if (left.lane === lane && left.status === 'PROCESSING') this.returnLapsed(left)
      })
      return { taken, fairShare }
    })
  }

  releaseLanes(_: number, __: string, lanes: readonly HeldLane[]): Promise<void> {
    return this.#run('releaseLanes', () => {
      for (const { lane } of lanes) Object.assign(this.lanes[lane] ?? {}, { owner: null, untilMs: -1 })
    })
  }

  leave(workerId: string): Promise<void> {
    return this.#run('leave', () => void this.workers.delete(workerId))
  }

  register(definition: SubscriptionDefinition): Promise<RegisteredSubscription> {
    return this.#run('register', () => {
      this.definition = definition
      const { name, orderBy, lanes, eventTypes } = definition
      return { id: 1, name, state: 'joining', orderBy, lanes, eventTypes, paused: false } as const
    })
  }

  advanceJoining(): Promise<readonly string[]> {
    return this.#run('advanceJoining', () => this.joining)
  }

  subscriptions(): Promise<readonly RegisteredSubscription[]> {
    return Promise.resolve([])
  }

  setPaused(): Promise<never> {
    return Promise.reject(new Error('not in memory'))
  }

  takeUnmatched(): Promise<readonly UnmatchedEvent[]> {
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

  async #run<Result>(operation: string, effect: () => Result): Promise<Result> {
    this.calls.push(operation)
    await this.interpose(operation, 'before')
    const result = effect()
    await this.interpose(operation, 'after')
    return result
  }
}
