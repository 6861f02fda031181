import type { DeliveryKey, Settled } from '../../src/delivery/delivery.ts'
import type { OutboxEvent } from '../../src/event/event.ts'
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
  TakenLanes,
} from '../../src/store/queue-store.ts'
import type { WakeSubscription, WorkerStore } from '../../src/store/store.ts'
import type { RegisteredSubscription, SubscriptionDefinition } from '../../src/store/subscription-store.ts'
import type { MemoryTables } from './memory-tables.ts'

/** What a test may do around each call: wait before and after its effect, or fail it. */
export type Interpose = (operation: string, when: 'before' | 'after') => Promise<void> | void

/**
 * The ports of one worker in memory, by the rules of src/store/postgres: for timing that a database cannot step. Not a
 * store for anything else.
 */
export class MemoryStore implements WorkerStore {
  readonly tables: MemoryTables
  readonly calls: string[] = []
  readonly batches: (readonly Settled[])[] = []
  interpose: Interpose = () => {}
  definition: SubscriptionDefinition | null = null
  joining: string[] = []
  unmatched: OutboxEvent[] = []
  closed = false

  constructor(tables: MemoryTables) {
    this.tables = tables
  }

  claim(request: ClaimRequest): Promise<readonly LaneDelivery[]> {
    return this.#run('claim', () => {
      const due = this.tables.pending(0).filter((row) => row.held && this.tables.isDue(row) && !row.suspect)
      const fresh = this.tables.pending(0).filter((row) => !row.held)
      const picked = [...due, ...fresh].slice(0, request.limit)
      return this.tables.lease(picked, request.workerId, () => this.tables.now + request.leaseMs)
    })
  }

  claimLanes(request: LaneClaimRequest): Promise<readonly LaneDelivery[]> {
    return this.#run('claimLanes', () => {
      const lanes = this.tables.owned(request)
      const chosen = this.tables.due(lanes, Math.max(1, Math.floor(request.limit / 4)))
      const fresh = lanes.flatMap(({ lane }) => this.tables.pending(lane)).filter(({ held }) => !held)
      const read = fresh.slice(0, Math.max(0, request.limit - chosen.length))
      const blocked = read.filter((row) => this.tables.earlierHeld(row).length > 0)
      const free = read.filter((row) => !blocked.includes(row))
      for (const row of blocked) Object.assign(row, { held: true, nextRetryAtMs: Number.POSITIVE_INFINITY })
      const untilMs = (lane: number): number => this.tables.lanes[lane]?.untilMs ?? 0
      return this.tables.lease([...chosen, ...free], request.workerId, untilMs)
    })
  }

  claimSuspect(
    request: ClaimRequest & { readonly lanes?: readonly HeldLane[] },
  ): Promise<LaneDelivery | null> {
    return this.#run('claimSuspect', () => {
      const lanes = this.tables.lanes.length === 0 ? [{ lane: 0 }] : this.tables.owned(request)
      const [suspect] = lanes
        .flatMap(({ lane }) => this.tables.pending(lane))
        .filter(
          (row) =>
            row.suspect &&
            this.tables.isDue(row) &&
            !(this.tables.lanes.length > 0 && this.tables.earlierHeld(row).length > 0),
        )
      if (suspect === undefined) return null
      return (
        this.tables.lease([suspect], request.workerId, () => this.tables.now + request.leaseMs)[0] ?? null
      )
    })
  }

  settle(batch: readonly Settled[]): Promise<SettleReport> {
    return this.#run('settle', () => {
      this.batches.push(batch)
      const lost: DeliveryKey[] = []
      const dead: NewDeadLetter[] = []
      for (const settled of batch) {
        if (!this.tables.settle(settled, dead)) lost.push(settled.delivery)
      }
      return { lost, dead }
    })
  }

  unpark(_: number, keys: readonly { readonly key: string }[]): Promise<void> {
    return this.#run('unpark', () => {
      for (const row of this.tables.rows) {
        if (this.tables.isParked(row) && keys.some(({ key }) => key === row.key))
          row.nextRetryAtMs = this.tables.now
      }
    })
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
        const isHeld = row.status === 'PROCESSING' && String(row.token) === delivery.lease.token
        if (!isHeld || row.lockedUntilMs <= this.tables.now) return true
        row.lockedUntilMs = this.tables.now + request.leaseMs
        return false
      })
      return { lostDeliveries, lostLanes }
    })
  }

  recover(): Promise<RecoverReport> {
    return this.#run('recover', () => {
      const lapsed = this.tables.rows.filter(
        (row) => row.status === 'PROCESSING' && row.lockedUntilMs < this.tables.now,
      )
      for (const row of lapsed) this.tables.returnLapsed(row)
      const suspects = this.tables.rows.filter(
        (row) => row.status === 'PENDING' && row.suspect && this.tables.isDue(row),
      ).length
      return { returned: lapsed.length, dead: [], suspects: new Map(suspects === 0 ? [] : [[1, suspects]]) }
    })
  }

  takeLanes(request: {
    readonly workerId: string
    readonly leaseMs: number
    readonly held: number
  }): Promise<TakenLanes> {
    return this.#run('takeLanes', () => {
      const fairShare = Math.ceil(
        this.tables.lanes.length / Math.max(1, this.tables.liveWorkers(request.workerId)),
      )
      const taken: HeldLane[] = []
      this.tables.lanes.forEach((row, lane) => {
        if (request.held + taken.length >= fairShare || row.untilMs >= this.tables.now) return
        Object.assign(row, {
          owner: request.workerId,
          untilMs: this.tables.now + request.leaseMs,
          epoch: row.epoch + 1,
        })
        taken.push({ lane, epoch: String(row.epoch) })
        for (const left of this.tables.rows)
          if (left.lane === lane && left.status === 'PROCESSING') this.tables.returnLapsed(left)
      })
      this.tables.unparkStranded()
      return { taken, fairShare, dead: [] }
    })
  }

  releaseLanes(_: number, __: string, lanes: readonly HeldLane[]): Promise<void> {
    return this.#run('releaseLanes', () => {
      for (const { lane } of lanes) Object.assign(this.tables.lanes[lane] ?? {}, { owner: null, untilMs: -1 })
    })
  }

  leave(workerId: string): Promise<void> {
    return this.#run('leave', () => void this.tables.workers.delete(workerId))
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

  async #run<Result>(operation: string, effect: () => Result): Promise<Result> {
    this.calls.push(operation)
    await this.interpose(operation, 'before')
    const result = effect()
    await this.interpose(operation, 'after')
    return result
  }
}
