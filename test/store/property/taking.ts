import assert from 'node:assert/strict'
import type { ClaimedDelivery } from '../../../src/delivery/delivery.ts'
import { syncParked } from './compare.ts'
import {
  claimRow,
  type Model,
  type ModelDelivery,
  type ModelSubscription,
  type ModelWorker,
  recoverRow,
} from './model.ts'
import type { Real } from './real.ts'
import { Step } from './step.ts'

const LEASE_MS = 3_600_000

/** A quarter is for retries, of one claim a little less and of the next a little more. */
const DUE_SHARE = 4

function subscriptionOf(model: Readonly<Model>, ordered: boolean): ModelSubscription | undefined {
  return model.subscriptions.find((subscription) => subscription.ordered === ordered)
}

/** Takes note of what was claimed, and asserts what holds for every claim. */
function take(
  model: Model,
  worker: ModelWorker,
  claimed: readonly ClaimedDelivery[],
): readonly ModelDelivery[] {
  const rows = claimed.map((delivery) => model.row(delivery))
  for (const [n, row] of rows.entries()) {
    const delivery = claimed[n] as ClaimedDelivery
    assert.equal(row.status, 'PENDING')
    assert.ok(row.wait === 'nothing' || row.wait === 'due', `${row.event.position} was not due`)
    assert.equal(delivery.attempt, row.attempts + 1)
    assert.equal(delivery.suspect, row.suspect)
    assert.ok(n === 0 || (rows[n - 1]?.event.position ?? 0) < row.event.position, 'in position order')
    claimRow(row, delivery.lease.token)
  }
  worker.hand.push(...claimed)
  return rows
}

const isFresh = ({ status, held }: ModelDelivery): boolean => status === 'PENDING' && !held
const isDue = ({ status, wait, suspect }: ModelDelivery): boolean =>
  status === 'PENDING' && wait === 'due' && !suspect

export class Claim extends Step {
  readonly #worker: number
  readonly #limit: number

  constructor(worker: number, limit: number) {
    super(`w${worker + 1} claims ${limit}`)
    this.#worker = worker
    this.#limit = limit
  }

  override check(model: Readonly<Model>): boolean {
    return subscriptionOf(model, false) !== undefined
  }

  protected override async act(model: Model, real: Real): Promise<void> {
    const subscription = subscriptionOf(model, false) as ModelSubscription
    const worker = model.worker(this.#worker)
    await real.letSecondPass()
    const claimed = await real.store.claim({
      subscriptionId: subscription.id,
      workerId: worker.workerId,
      limit: this.#limit,
      leaseMs: LEASE_MS,
    })
    const rows = subscription.paused ? [] : model.of(subscription)
    const due = rows.filter(isDue)
    const fresh = rows.filter(isFresh)
    const taken = new Set(claimed.map((delivery) => model.row(delivery)))
    const dueTaken = due.filter((row) => taken.has(row)).length
    const freshTaken = [...taken].filter(isFresh)
    const dueShare = this.#limit / DUE_SHARE
    assert.equal(taken.size, Math.min(this.#limit, due.length + fresh.length), 'no place is left free')
    assert.ok(dueTaken >= Math.min(due.length, Math.floor(dueShare)), 'retries have their share')
    assert.ok(
      freshTaken.length >= Math.min(fresh.length, Math.floor(this.#limit - dueShare)),
      'and others too',
    )
    assert.deepEqual(
      freshTaken.map(({ event }) => event.position),
      fresh.slice(0, freshTaken.length).map(({ event }) => event.position),
      'the first of the fresh ones',
    )
    take(model, worker, claimed)
  }
}

/** The lanes this worker may claim of: owned, under the epoch it knows, and not lapsed. */
function goodLanes(subscription: ModelSubscription, worker: ModelWorker): ReadonlySet<number> {
  return new Set(
    worker.lanes
      .filter(({ lane, epoch }) => {
        const owned = subscription.lanes[lane]
        return owned?.workerId === worker.workerId && owned.epoch === epoch && !owned.lapsed
      })
      .map(({ lane }) => lane),
  )
}

export class ClaimLanes extends Step {
  readonly #worker: number
  readonly #limit: number

  constructor(worker: number, limit: number) {
    super(`w${worker + 1} claims ${limit} of its lanes`)
    this.#worker = worker
    this.#limit = limit
  }

  override check(model: Readonly<Model>): boolean {
    return subscriptionOf(model, true) !== undefined && model.worker(this.#worker).lanes.length > 0
  }

  protected override async act(model: Model, real: Real): Promise<void> {
    const subscription = subscriptionOf(model, true) as ModelSubscription
    const worker = model.worker(this.#worker)
    await real.letSecondPass()
    const claimed = await real.store.claimLanes({
      subscriptionId: subscription.id,
      workerId: worker.workerId,
      limit: this.#limit,
      leaseMs: LEASE_MS,
      lanes: worker.lanes,
    })
    const good = goodLanes(subscription, worker)
    const open = subscription.active && !subscription.paused
    const rows = open ? model.of(subscription).filter(({ lane }) => good.has(lane)) : []
    const taken = new Set(claimed.map((delivery) => model.row(delivery)))
    assert.ok(taken.size <= this.#limit, 'no more than the limit')
    for (const row of taken) this.#assertInOrder(model, row, taken)
    const freshBefore = rows.filter(isFresh)
    const heads = rows.filter((row) => isDue(row) && !model.isBehindHeld(row))
    const dueTaken = [...taken].filter(isDue).length
    const freshTaken = [...taken].filter(isFresh).length
    const parked = await syncParked(model, real)
    if (taken.size < this.#limit && dueTaken + parked.due < this.#limit) {
      assert.ok(
        heads.every((row) => taken.has(row)),
        'the first that waits of a key, once it is due',
      )
    }
    const looked = Math.min(freshBefore.length, Math.max(this.#limit - dueTaken, 0))
    assert.ok(freshTaken + parked.fresh >= looked, 'fresh ones were claimed or parked')
    for (const row of take(model, worker, claimed)) assert.ok(rows.includes(row), 'of a lane that is its own')
  }

  /** Nothing of its key that waits comes before it, unless it comes along. */
  #assertInOrder(model: Model, row: ModelDelivery, taken: ReadonlySet<ModelDelivery>): void {
    const waiting = model.before(row).filter(({ held }) => held)
    if (isFresh(row)) assert.deepEqual(waiting, [], `${row.event.position} overtakes what is held`)
    assert.ok(
      waiting.every((earlier) => taken.has(earlier)),
      `${row.event.position} overtakes`,
    )
  }
}

export class ClaimSuspects extends Step {
  readonly #worker: number
  readonly #ordered: boolean
  readonly #limit: number

  constructor(worker: number, ordered: boolean, limit: number) {
    super(`w${worker + 1} claims ${limit} suspects of ${ordered ? 'ordered' : 'plain'}`)
    this.#limit = limit
    this.#worker = worker
    this.#ordered = ordered
  }

  override check(model: Readonly<Model>): boolean {
    return subscriptionOf(model, this.#ordered) !== undefined
  }

  protected override async act(model: Model, real: Real): Promise<void> {
    const subscription = subscriptionOf(model, this.#ordered) as ModelSubscription
    const worker = model.worker(this.#worker)
    const { workerId, lanes } = worker
    const by = { subscriptionId: subscription.id, workerId, lanes, leaseMs: LEASE_MS }
    const claimed = await real.store.claimSuspects({ ...by, limit: this.#limit })
    const good = goodLanes(subscription, worker)
    const open = !subscription.paused && (subscription.active || !subscription.ordered)
    const candidates = model
      .of(subscription)
      .filter((row) => row.suspect && row.status === 'PENDING' && row.wait === 'due' && open)
      .filter((row) => !row.subscription.ordered || (good.has(row.lane) && isFirstOfItsKey(model, row)))
    assert.deepEqual(
      claimed.map(({ position }) => Number(position)),
      candidates.slice(0, this.#limit).map(({ event }) => event.position),
      'the oldest suspects that may run',
    )
    const rows = take(model, worker, claimed)
    // A crash is charged to a suspect that runs alone, and to no other.
    const [only] = claimed
    const isAlone = only !== undefined && claimed.length === 1 && (await real.store.markAlone(only))
    for (const row of rows) row.suspect = isAlone
  }
}

function isFirstOfItsKey(model: Model, row: ModelDelivery): boolean {
  const inHand = model
    .of(row.subscription)
    .some(({ event, status }) => event.key === row.event.key && status === 'PROCESSING')
  return !inHand && !model.isBehindHeld(row)
}

/** A heartbeat: extends what is held, and the worker learns which lanes it lost. */
async function beat(model: Model, real: Real, worker: ModelWorker): Promise<void> {
  const { workerId, hand, lanes } = worker
  const ordered = subscriptionOf(model, true)
  const subscriptionId = ordered?.id ?? 0
  const report = await real.store.heartbeat({
    workerId,
    subscriptionIds: model.subscriptions.map(({ id }) => id),
    host: 'test',
    pid: 1,
    leaseMs: LEASE_MS,
    deliveries: hand,
    lanes: lanes.map((lane) => ({ ...lane, subscriptionId })),
  })
  const lost = hand.filter((delivery) => {
    const row = model.row(delivery)
    return row.token !== delivery.lease.token || row.lapsed
  })
  assert.deepEqual(
    report.lostDeliveries.map(({ position }) => position).toSorted(),
    lost.map(({ position }) => position).toSorted(),
  )
  const good = ordered === undefined ? new Set<number>() : goodLanes(ordered, worker)
  assert.deepEqual(
    new Set(report.lostLanes.map(({ lane }) => lane)),
    new Set(lanes.map(({ lane }) => lane).filter((lane) => !good.has(lane))),
  )
  worker.lanes = lanes.filter(({ lane }) => good.has(lane))
  worker.beatsFor = model.subscriptions.map(({ name }) => name)
}

export class Beat extends Step {
  readonly #worker: number

  constructor(worker: number) {
    super(`w${worker + 1} beats`)
    this.#worker = worker
  }

  protected override act(model: Model, real: Real): Promise<void> {
    return beat(model, real, model.worker(this.#worker))
  }
}

export class TakeLanes extends Step {
  readonly #worker: number

  constructor(worker: number) {
    super(`w${worker + 1} takes lanes`)
    this.#worker = worker
  }

  override check(model: Readonly<Model>): boolean {
    return subscriptionOf(model, true) !== undefined
  }

  protected override async act(model: Model, real: Real): Promise<void> {
    const subscription = subscriptionOf(model, true) as ModelSubscription
    const worker = model.worker(this.#worker)
    await beat(model, real, worker)
    const { workerId, lanes } = worker
    const { taken, fairShare } = await real.store.takeLanes({
      subscriptionId: subscription.id,
      workerId,
      leaseMs: LEASE_MS,
      held: lanes,
    })
    await real.holdTime()
    const alive = model.workers.filter(({ beatsFor }) => beatsFor.includes(subscription.name)).length
    assert.equal(fairShare, Math.ceil(subscription.lanes.length / alive))
    const free = subscription.lanes.filter((lane) => lane === null || lane.lapsed).length
    assert.equal(taken.length, Math.min(free, Math.max(0, fairShare - lanes.length)))
    for (const { lane, epoch } of taken) {
      const before = subscription.lanes[lane]
      assert.ok(before === null || before === undefined || before.lapsed, 'a lane that somebody has')
      assert.ok(Number(epoch) > Number(before?.epoch ?? 0), 'the epoch grows')
      subscription.lanes[lane] = { workerId, epoch, lapsed: false }
      for (const row of model.of(subscription)) {
        if (row.lane === lane && row.status === 'PROCESSING') recoverRow(row)
      }
    }
    worker.lanes = [...lanes, ...taken]
    // What is parked behind nothing is let go.
    for (const row of model.of(subscription)) {
      if (row.wait === 'parked' && !row.suspect && !model.isBehindHeld(row)) row.wait = 'due'
    }
  }
}
