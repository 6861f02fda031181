import assert from 'node:assert/strict'
import type { Settlement } from '../../../src/delivery/delivery.ts'
import { type Model, type ModelDelivery, recoverRow, resolveKey, settleRow, unparkKey } from './model.ts'
import type { Real } from './real.ts'
import { Step } from './step.ts'

/** How many of a key are let go at most. */
const MOST = 3

/** Settles one or two of what a worker believes to have in hand, which may be lost. */
export class Settle extends Step {
  readonly #worker: number
  readonly #count: number
  readonly #settlement: Settlement
  readonly #unparks: boolean

  constructor(worker: number, count: number, settlement: Settlement, unparks: boolean) {
    super(
      `w${worker + 1} settles ${count}: ${settlement.kind}${unparks ? '' : ', crashes before it unparks'}`,
    )
    this.#worker = worker
    this.#count = count
    this.#settlement = settlement
    this.#unparks = unparks
  }

  override check(model: Readonly<Model>): boolean {
    return model.workers.some(({ hand }) => hand.length > 0)
  }

  protected override async act(model: Model, real: Real): Promise<void> {
    const chosen = model.worker(this.#worker)
    const worker = chosen.hand.length > 0 ? chosen : model.worker(this.#worker + 1)
    // A suspect runs alone and is never parked; without order nothing is.
    const [first] = worker.hand
    const parks = this.#settlement.kind === 'park'
    if (first === undefined || (parks && (first.suspect || !model.row(first).subscription.ordered))) return
    const batch = worker.hand.filter(({ suspect }) => !parks || !suspect).slice(0, this.#count)
    const isOrdered = batch.every((delivery) => !parks || model.row(delivery).subscription.ordered)
    if (!isOrdered) return
    worker.hand = worker.hand.filter((delivery) => !batch.includes(delivery))
    const settlement = this.#settlement
    const report = await real.store.settle(batch.map((delivery) => ({ delivery, settlement, durationMs: 1 })))
    const lost = batch.filter((delivery) => model.row(delivery).token !== delivery.lease.token)
    assert.deepEqual(
      report.lost.map(({ position }) => position).toSorted(),
      lost.map(({ position }) => position).toSorted(),
    )
    const kept = batch.filter((delivery) => !lost.includes(delivery))
    const written = kept.map((delivery) => model.row(delivery))
    for (const delivery of kept) settleRow(model.row(delivery), settlement, delivery.suspect)
    assert.equal(report.dead.length, settlement.kind === 'dead' ? written.length : 0)
    if (this.#unparks) await unparkAfter(model, real, written)
  }
}

/** As a runner does: what is done, or dead where that lets the key go on, lets go what waits behind it. */
async function unparkAfter(model: Model, real: Real, written: readonly ModelDelivery[]): Promise<void> {
  for (const { subscription, event, lane, status } of written) {
    const goesOn = status === 'DONE' || (status === 'DEAD' && subscription.onDead === 'continue')
    if (!subscription.ordered || !goesOn) continue
    await real.store.unpark(subscription.id, [{ lane, key: `thing:${event.key}`, most: MOST }])
    unparkKey(model, subscription, event.key, MOST)
  }
}

export class Lapse extends Step {
  readonly #worker: number

  constructor(worker: number) {
    super(`the leases of w${worker + 1} lapse`)
    this.#worker = worker
  }

  protected override async act(model: Model, real: Real): Promise<void> {
    const worker = model.worker(this.#worker)
    await real.lapse(worker.workerId)
    worker.beatsFor = []
    for (const delivery of worker.hand) {
      const row = model.row(delivery)
      if (row.token === delivery.lease.token) row.lapsed = true
    }
    for (const { lanes } of model.subscriptions) {
      for (const lane of lanes) if (lane?.workerId === worker.workerId) lane.lapsed = true
    }
  }
}

export class Recover extends Step {
  constructor() {
    super('recover')
  }

  protected override async act(model: Model, real: Real): Promise<void> {
    const report = await real.store.recover(model.subscriptions.map(({ id }) => id))
    await real.holdTime()
    const lapsed = model.deliveries.filter((row) => row.lapsed)
    const returned = [...report.returned.values()].reduce((sum, count) => sum + count, 0)
    assert.equal(returned, lapsed.length)
    for (const row of lapsed) recoverRow(row)
    assert.equal(report.dead.length, lapsed.filter(({ status }) => status === 'DEAD').length)
    for (const { id, name } of model.subscriptions) {
      const suspects = model.deliveries.filter(
        (row) =>
          row.subscription.name === name &&
          row.suspect &&
          row.wait === 'due' &&
          !row.subscription.paused &&
          !model.isBehindHeld(row),
      )
      assert.equal(report.suspects.get(id) ?? 0, suspects.length)
    }
  }
}

export class LetTimePass extends Step {
  constructor() {
    super('time passes')
  }

  protected override async act(model: Model, real: Real): Promise<void> {
    await real.letTimePass()
    for (const row of model.deliveries) if (row.wait === 'later') row.wait = 'due'
  }
}

/** An operator decides on a dead letter. */
export class Decide extends Step {
  readonly #act: 'retry' | 'resolve'
  readonly #index: number

  constructor(act: 'retry' | 'resolve', index: number) {
    super(`an operator decides to ${act} dead letter ${index}`)
    this.#act = act
    this.#index = index
  }

  override check(model: Readonly<Model>): boolean {
    return model.deliveries.some(({ letter }) => letter)
  }

  protected override async act(model: Model, real: Real): Promise<void> {
    const letters = model.deliveries.filter(({ letter }) => letter)
    const row = letters[this.#index % letters.length] as ModelDelivery
    await real.decide(this.#act, row.subscription.name, row.event)
    row.letter = false
    row.held = false
    if (this.#act === 'retry') Object.assign(row, { status: 'PENDING', held: true, wait: 'due', attempts: 0 })
    else resolveKey(model, row.subscription, row.event.key)
  }
}
