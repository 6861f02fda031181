import type { ClaimedDelivery, Settlement } from '../../../src/delivery/delivery.ts'
import type { HeldLane } from '../../../src/store/queue-store.ts'

/** What a delivery waits for. `later` is a time that has not come. */
export type Wait = 'nothing' | 'due' | 'later' | 'parked'

/** A delivery as the model knows it. */
export interface ModelDelivery {
  readonly subscription: ModelSubscription
  readonly event: ModelEvent
  /** Known once it has been seen in the database. */
  lane: number
  status: 'PENDING' | 'PROCESSING' | 'DONE' | 'DEAD'
  attempts: number
  suspect: boolean
  held: boolean
  wait: Wait
  /** The token of whoever has it in hand. */
  token: string | null
  lapsed: boolean
  /** Its dead letter is open. */
  letter: boolean
}

/** An event of a transaction, whether it has ended or not. */
export interface ModelEvent {
  readonly eventId: string
  readonly key: string
  readonly insertedAt: number
  /** Null while its transaction is open. */
  committedAt: number | null
  /** Known once it has been seen in the database. */
  position: number
}

/** A subscription as the model knows it. */
export interface ModelSubscription {
  readonly name: string
  readonly ordered: boolean
  readonly onDead: 'block' | 'continue'
  readonly maxAttempts: number
  readonly fromBeginning: boolean
  readonly registeredAt: number
  id: number
  active: boolean
  paused: boolean
  /** For each lane who owns it, if anybody. */
  readonly lanes: (ModelLane | null)[]
}

/** A lane that somebody owns or owned. */
interface ModelLane {
  readonly workerId: string
  readonly epoch: string
  lapsed: boolean
}

/** What a worker believes to have. Some of it may be lost already. */
export interface ModelWorker {
  readonly workerId: string
  hand: ClaimedDelivery[]
  lanes: readonly HeldLane[]
  /** The subscriptions its last heartbeat spoke of, by name; none once it lapsed. */
  beatsFor: readonly string[]
}

/** The whole system in memory: what the tables should say, and nothing of how they come to say it. */
export class Model {
  readonly events: ModelEvent[] = []
  readonly subscriptions: ModelSubscription[] = []
  readonly deliveries: ModelDelivery[] = []
  readonly workers: readonly ModelWorker[] = ['w1', 'w2'].map((workerId) => ({
    workerId,
    hand: [],
    lanes: [],
    beatsFor: [],
  }))
  /** Events of the one transaction that is open, if one is. */
  open: ModelEvent[] | null = null
  #moment = 0

  /** A moment later than all before. */
  tick(): number {
    this.#moment += 1
    return this.#moment
  }

  worker(index: number): ModelWorker {
    return this.workers[index % this.workers.length] as ModelWorker
  }

  /** Adds what the subscriptions should have by now and did not have before. */
  spread(): void {
    for (const subscription of this.subscriptions) {
      for (const event of this.events) {
        if (event.committedAt === null || !takes(subscription, event)) continue
        if (this.deliveries.some((row) => row.subscription === subscription && row.event === event)) continue
        this.deliveries.push(fresh(subscription, event))
      }
    }
  }

  of(subscription: ModelSubscription): readonly ModelDelivery[] {
    return this.deliveries
      .filter((row) => row.subscription === subscription)
      .toSorted((a, b) => a.event.position - b.event.position)
  }

  /** The row a claimed delivery is of. */
  row(delivery: ClaimedDelivery): ModelDelivery {
    const found = this.deliveries.find(
      ({ subscription, event }) =>
        subscription.id === delivery.subscriptionId && event.eventId === delivery.event.eventId,
    )
    if (found === undefined) throw new Error('claimed what was never published')
    return found
  }

  /** The rows of the same key and subscription that come before. */
  before(row: ModelDelivery): readonly ModelDelivery[] {
    return this.of(row.subscription).filter(
      ({ event }) => event.key === row.event.key && event.position < row.event.position,
    )
  }

  /** Whether something earlier of the key is held: the row must not be claimed now. */
  isBehindHeld(row: ModelDelivery): boolean {
    return row.subscription.ordered && this.before(row).some(({ held }) => held)
  }
}

/** Whether a subscription has the event by now. While it joins it has what was inserted since; then, all it should. */
export function takes(subscription: ModelSubscription, event: ModelEvent): boolean {
  const { registeredAt, active, fromBeginning } = subscription
  if (event.insertedAt > registeredAt) return true
  return active && (fromBeginning || (event.committedAt ?? 0) > registeredAt)
}

function fresh(subscription: ModelSubscription, event: ModelEvent): ModelDelivery {
  return {
    subscription,
    event,
    lane: 0,
    status: 'PENDING',
    attempts: 0,
    suspect: false,
    held: false,
    wait: 'nothing',
    token: null,
    lapsed: false,
    letter: false,
  }
}

function leave(row: ModelDelivery, status: 'PENDING' | 'DONE' | 'DEAD', wait: Wait, held: boolean): void {
  Object.assign(row, { status, wait, held, token: null, lapsed: false })
}

function blocks({ ordered, onDead }: ModelSubscription): boolean {
  return ordered && onDead === 'block'
}

/** claim */
export function claimRow(row: ModelDelivery, token: string): void {
  Object.assign(row, { status: 'PROCESSING', held: false, wait: 'nothing', token, lapsed: false })
  row.attempts += 1
}

/** complete, retry, die, release, park; a suspect that is given back is one again. */
export function settleRow(row: ModelDelivery, settlement: Settlement, wasSuspect: boolean): void {
  switch (settlement.kind) {
    case 'done':
      row.suspect = false
      return leave(row, 'DONE', 'nothing', false)
    case 'dead':
      row.suspect = false
      row.letter = true
      return leave(row, 'DEAD', 'nothing', blocks(row.subscription))
    case 'retry':
      row.suspect = false
      return leave(row, 'PENDING', settlement.delayMs === 0 ? 'due' : 'later', true)
    case 'release':
      row.attempts -= 1
      row.suspect = wasSuspect
      return leave(row, 'PENDING', settlement.delayMs === 0 ? 'due' : 'later', true)
    case 'park':
      row.attempts -= 1
      row.suspect = wasSuspect
      return leave(row, 'PENDING', 'parked', true)
  }
}

/** recover: with several in hand nobody is charged; a suspect ran alone, so the crash is its own. */
export function recoverRow(row: ModelDelivery): void {
  if (!row.suspect) {
    row.attempts -= 1
    row.suspect = true
    return leave(row, 'PENDING', 'due', true)
  }
  if (row.attempts < row.subscription.maxAttempts) return leave(row, 'PENDING', 'later', true)
  row.suspect = false
  row.letter = true
  leave(row, 'DEAD', 'nothing', blocks(row.subscription))
}

/** unpark: the first of what is held of the key, unless the very first may not go on by itself. */
export function unparkKey(model: Model, subscription: ModelSubscription, key: string, most: number): void {
  const held = model.of(subscription).filter((row) => row.event.key === key && row.held)
  const head = held[0]
  if (head?.status !== 'PENDING' || (head.wait !== 'due' && head.wait !== 'parked')) return
  for (const row of held.slice(0, most)) if (row.wait === 'parked') row.wait = 'due'
}

/** outbox_resolve: whatever of the key waits for an earlier event. */
export function resolveKey(model: Model, subscription: ModelSubscription, key: string): void {
  for (const row of model.of(subscription)) {
    if (row.event.key === key && row.wait === 'parked') row.wait = 'due'
  }
}
