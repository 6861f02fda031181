import assert from 'node:assert/strict'
import type { Model, ModelEvent, ModelSubscription } from './model.ts'
import type { Real } from './real.ts'
import { Step } from './step.ts'

export class Publish extends Step {
  readonly #keys: readonly string[]
  readonly #end: 'commit' | 'rollback' | 'leave open'

  constructor(keys: readonly string[], end: 'commit' | 'rollback' | 'leave open') {
    super(`publish ${keys.join(' ')}, ${end}`)
    this.#keys = keys
    this.#end = end
  }

  override check(model: Readonly<Model>): boolean {
    return model.open === null
  }

  protected override async act(model: Model, real: Real): Promise<void> {
    const insertedAt = model.tick()
    const ids = await real.publish(this.#keys, this.#end)
    if (this.#end === 'rollback') return
    const committedAt = this.#end === 'commit' ? model.tick() : null
    const events = this.#keys.map(
      (key, n): ModelEvent => ({ eventId: ids[n] as string, key, insertedAt, committedAt, position: 0 }),
    )
    if (committedAt === null) model.open = events
    else model.events.push(...events)
  }
}

export class EndPublish extends Step {
  readonly #end: 'commit' | 'rollback'

  constructor(end: 'commit' | 'rollback') {
    super(`end the open transaction, ${end}`)
    this.#end = end
  }

  override check(model: Readonly<Model>): boolean {
    return model.open !== null
  }

  protected override async act(model: Model, real: Real): Promise<void> {
    const events = model.open ?? []
    model.open = null
    await real.endPublish(this.#end)
    if (this.#end === 'rollback') return
    const committedAt = model.tick()
    for (const event of events) event.committedAt = committedAt
    model.events.push(...events)
  }
}

/** How a subscription of a run looks. */
export interface Shape {
  readonly ordered: boolean
  readonly onDead: 'block' | 'continue'
  readonly maxAttempts: number
  readonly fromBeginning: boolean
}

const LANES = 2

export class Register extends Step {
  readonly #shape: Shape

  constructor(shape: Shape) {
    super(`register ${JSON.stringify(shape)}`)
    this.#shape = shape
  }

  override check(model: Readonly<Model>): boolean {
    return !model.subscriptions.some(({ ordered }) => ordered === this.#shape.ordered)
  }

  protected override async act(model: Model, real: Real): Promise<void> {
    const { ordered, onDead, maxAttempts, fromBeginning } = this.#shape
    const name = `${real.stream}-${ordered ? 'ordered' : 'plain'}`
    const { id } = await real.store.register({
      name,
      streams: [real.stream],
      eventTypes: null,
      orderBy: ordered ? 'aggregate' : 'none',
      lanes: ordered ? LANES : 0,
      onDead,
      maxAttempts,
      startFrom: fromBeginning ? 'beginning' : 'now',
    })
    const registeredAt = model.tick()
    const lanes = Array.from({ length: ordered ? LANES : 0 }, () => null)
    model.subscriptions.push({ ...this.#shape, name, id, registeredAt, active: false, paused: false, lanes })
  }
}

export class Advance extends Step {
  constructor() {
    super('advance what joins')
  }

  protected override async act(model: Model, real: Real): Promise<void> {
    const joining = await real.store.advanceJoining()
    for (const subscription of model.subscriptions) {
      // When it is done is the server's business, except that it must wait for what is open.
      if (subscription.active) assert.ok(!joining.includes(subscription.name))
      else subscription.active = !joining.includes(subscription.name)
    }
  }
}

export class Pause extends Step {
  readonly #ordered: boolean

  constructor(ordered: boolean) {
    super(`pause or resume ${ordered ? 'ordered' : 'plain'}`)
    this.#ordered = ordered
  }

  override check(model: Readonly<Model>): boolean {
    return model.subscriptions.some(({ ordered }) => ordered === this.#ordered)
  }

  protected override async act(model: Model, real: Real): Promise<void> {
    const subscription = model.subscriptions.find(
      ({ ordered }) => ordered === this.#ordered,
    ) as ModelSubscription
    subscription.paused = !subscription.paused
    await real.store.setPaused(subscription.name, subscription.paused, 'kim')
  }
}
