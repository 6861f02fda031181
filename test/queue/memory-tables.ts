import type { DeliveryKey, Settled } from '../../src/delivery/delivery.ts'
import type { ManualClock } from '../../src/runtime/manual-clock.ts'
import type { HeldLane, LaneDelivery, NewDeadLetter, ParkedKey } from '../../src/store/queue-store.ts'
import { eventAt } from './fakes.ts'

/** One delivery, as `outbox_delivery` keeps it. */
export interface Row extends DeliveryKey {
  readonly key: string
  status: 'PENDING' | 'PROCESSING' | 'DONE' | 'DEAD'
  held: boolean
  suspect: boolean
  attempts: number
  /** By the manual clock; infinite where parked. */
  nextRetryAtMs: number
  token: number | null
  lockedBy: string | null
  lockedUntilMs: number
  type: string
}

/** One lane, as `outbox_lane` keeps it. */
export interface LaneRow {
  owner: string | null
  untilMs: number
  epoch: number
}

/** The tables of one subscription in memory, by the rules of src/store/postgres. */
export class MemoryTables {
  readonly rows: Row[] = []
  readonly lanes: LaneRow[] = []
  /** Until when each worker counts as alive. */
  readonly workers = new Map<string, number>()
  readonly clock: ManualClock
  maxAttempts = 5
  /** When events are said to have been published. */
  createdAt = new Date(0)
  onDead: 'block' | 'continue' = 'block'
  /** In words: what was over before something earlier of its key. */
  readonly faults: string[] = []
  /** Until when somebody else has rows locked that are in a worker's hand, by position. */
  readonly #locks = new Map<string, number>()
  #tokens = 0
  #position = 0

  constructor(clock: ManualClock, lanes = 0) {
    this.clock = clock
    for (let lane = 0; lane < lanes; lane += 1) this.lanes.push({ owner: null, untilMs: -1, epoch: 0 })
  }

  publish(key = 'k', type = 'ThingHappened'): Row {
    this.#position += 1
    const row: Row = {
      subscriptionId: 1,
      lane: this.lanes.length === 0 ? 0 : hash(key) % this.lanes.length,
      position: String(this.#position),
      key,
      status: 'PENDING',
      held: false,
      suspect: false,
      attempts: 0,
      nextRetryAtMs: 0,
      token: null,
      lockedBy: null,
      lockedUntilMs: 0,
      type,
    }
    this.rows.push(row)
    return row
  }

  /** How many deliveries are in each status. */
  counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {}
    for (const { status } of this.rows) counts[status] = (counts[status] ?? 0) + 1
    return counts
  }

  get now(): number {
    return this.clock.monotonicMs()
  }

  pending(lane: number): Row[] {
    return this.rows.filter((row) => row.lane === lane && row.status === 'PENDING')
  }

  inHand(lane: number): Row[] {
    return this.rows.filter((row) => row.lane === lane && row.status === 'PROCESSING')
  }

  owned({ lanes = [] }: { readonly lanes?: readonly HeldLane[] }): readonly HeldLane[] {
    return lanes.filter(({ lane, epoch }) => {
      const row = this.lanes[lane]
      return row !== undefined && String(row.epoch) === epoch && row.untilMs > this.now
    })
  }

  liveWorkers(self: string): number {
    return [...this.workers].filter(([id, untilMs]) => id === self || untilMs > this.now).length
  }

  isDue(row: Row): boolean {
    return row.nextRetryAtMs <= this.now
  }

  isParked(row: Row): boolean {
    return row.status === 'PENDING' && row.held && row.nextRetryAtMs === Number.POSITIVE_INFINITY
  }

  earlierHeld(row: Row): Row[] {
    return this.rows.filter(
      (other) => other.key === row.key && other.held && Number(other.position) < Number(row.position),
    )
  }

  isBlocked(row: Row): boolean {
    return this.earlierHeld(row).some(
      (other) => other.status === 'DEAD' || other.suspect || other.nextRetryAtMs !== row.nextRetryAtMs,
    )
  }

  /** Held deliveries of these lanes whose time has come, those first that have waited longest. */
  due(lanes: readonly HeldLane[]): Row[] {
    return lanes.flatMap(({ lane }) => this.#dueInLane(lane))
  }

  #dueInLane(lane: number): Row[] {
    return this.pending(lane)
      .filter((row) => row.held && !row.suspect && this.isDue(row))
      .toSorted((a, b) => a.nextRetryAtMs - b.nextRetryAtMs || Number(a.position) - Number(b.position))
  }

  /** Lets go the first that are held of a key, due together, unless the very first waits for a retry or is dead. */
  unpark({ key, most }: ParkedKey): number {
    const held = this.rows.filter((row) => row.key === key && row.held)
    const [head] = held
    if (head?.status !== 'PENDING' || !(this.isParked(head) || this.isDue(head))) return 0
    const dueAtMs = this.isParked(head) ? this.now : head.nextRetryAtMs
    const parked = held.slice(0, most).filter((row) => this.isParked(row))
    for (const row of parked) row.nextRetryAtMs = dueAtMs
    return parked.length
  }

  /** Lets go what is parked although nothing stands before it any more. */
  unparkStranded(): void {
    for (const row of this.rows) {
      if (this.isParked(row) && this.earlierHeld(row).length === 0) row.nextRetryAtMs = this.now
    }
  }

  rowOf({ position }: Pick<DeliveryKey, 'position'>): Row {
    const row = this.rows.find((one) => one.position === position)
    if (row === undefined) throw new Error(`no row ${position}`)
    return row
  }

  lease(rows: readonly Row[], workerId: string, untilMs: (lane: number) => number): LaneDelivery[] {
    this.#tokens += 1
    const token = this.#tokens
    return rows
      .toSorted((a, b) => Number(a.position) - Number(b.position))
      .map((row) => {
        const wasHeld = row.held
        Object.assign(row, { status: 'PROCESSING', held: false, attempts: row.attempts + 1, token })
        Object.assign(row, { lockedBy: workerId, lockedUntilMs: untilMs(row.lane) })
        const { subscriptionId, lane, position, key, suspect } = row
        const event = { ...eventAt(Number(position), key), type: row.type, createdAt: this.createdAt }
        const lease = { token: String(token), workerId }
        const attempts = { attempt: row.attempts, maxAttempts: this.maxAttempts }
        return { subscriptionId, lane, position, key, suspect, event, lease, wasHeld, ...attempts }
      })
  }

  /** Somebody looks at a row in hand, with a lock, for so long. */
  lock(row: Row, ms: number): void {
    this.#locks.set(row.position, this.now + ms)
  }

  isLocked({ position }: DeliveryKey): boolean {
    return (this.#locks.get(position) ?? 0) > this.now
  }

  isLeased({ lease, ...key }: DeliveryKey & { readonly lease: { readonly token: string } }): boolean {
    const row = this.rowOf(key)
    return row.status === 'PROCESSING' && String(row.token) === lease.token
  }

  /** Those of a batch that cannot be written because they are locked, or would be DONE before one of their key that is not. */
  busy(batch: readonly Settled[]): readonly Settled[] {
    const leased = batch.filter(({ delivery }) => this.isLeased(delivery))
    const locked = leased.filter(({ delivery }) => this.isLocked(delivery))
    const lost = batch.filter(({ delivery }) => !this.isLeased(delivery) && !isOver(this.rowOf(delivery)))
    const unwritten = [...locked, ...lost].filter(({ settlement }) => settlement.kind === 'done')
    const isBehind = ({ delivery, settlement }: Settled): boolean =>
      this.lanes.length > 0 &&
      settlement.kind === 'done' &&
      unwritten.some(({ delivery: { position } }) => this.#isBefore(position, delivery))
    return leased.filter((settled) => locked.includes(settled) || isBehind(settled))
  }

  /** Those that are DONE or DEAD. */
  over(keys: readonly DeliveryKey[]): readonly DeliveryKey[] {
    return keys.filter((key) => isOver(this.rowOf(key)))
  }

  #isBefore(position: string, { position: later }: DeliveryKey): boolean {
    const [row, other] = [this.rowOf({ position }), this.rowOf({ position: later })]
    return row.key === other.key && Number(position) < Number(later)
  }

  #judgeOver(row: Row): void {
    if (this.lanes.length === 0) return
    const early = this.rows.filter((one) => this.#isBefore(one.position, row) && !isOver(one))
    if (early.length === 0) return
    this.faults.push(`${row.position} is over before ${early.map(({ position }) => position).join(', ')}`)
  }

  /** Writes a settlement down; true if the lease's token still fits. */
  settle({ delivery, settlement }: Settled, dead: NewDeadLetter[]): boolean {
    const row = this.rowOf(delivery)
    if (!this.isLeased(delivery)) return false
    const blocks = this.lanes.length > 0 && this.onDead === 'block'
    if (settlement.kind === 'done' || (settlement.kind === 'dead' && !blocks)) this.#judgeOver(row)
    row.token = null
    row.status = settlement.kind === 'done' ? 'DONE' : settlement.kind === 'dead' ? 'DEAD' : 'PENDING'
    row.held = settlement.kind === 'dead' ? blocks : settlement.kind !== 'done'
    if (settlement.kind === 'park') row.nextRetryAtMs = Number.POSITIVE_INFINITY
    if ('delayMs' in settlement) row.nextRetryAtMs = this.now + settlement.delayMs
    const isGivenBack = settlement.kind === 'park' || settlement.kind === 'release'
    if (isGivenBack) row.attempts -= 1
    row.suspect = isGivenBack && delivery.suspect
    if (settlement.kind !== 'dead') return true
    const eventId = eventAt(Number(row.position), row.key).eventId
    dead.push({ deadLetterId: row.position, delivery: row, eventId, errorCode: settlement.failure.code })
    return true
  }

  /** Returns what a vanished holder left, as far as nobody has it locked. False if somebody has. */
  returnFree(rows: readonly Row[]): boolean {
    const free = rows.filter((row) => !this.isLocked(row))
    for (const row of free) this.returnLapsed(row)
    return free.length === rows.length
  }

  /** Returns what a vanished holder left. */
  returnLapsed(row: Row): void {
    if (!row.suspect) row.attempts -= 1
    Object.assign(row, { status: 'PENDING', held: true, suspect: true, nextRetryAtMs: this.now, token: null })
  }
}

function isOver({ status }: Row): boolean {
  return status === 'DONE' || status === 'DEAD'
}

function hash(text: string): number {
  let value = 7
  for (const letter of text) value = (value * 31 + letter.charCodeAt(0)) >>> 0
  return value
}
