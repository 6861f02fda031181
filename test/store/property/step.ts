import { compare } from './compare.ts'
import type { Model } from './model.ts'
import type { Real } from './real.ts'

/** One thing that can happen. After each, the tables must say what the model says. */
export abstract class Step {
  /** What is printed of it when a run fails. */
  readonly #name: string

  constructor(name: string) {
    this.#name = name
  }

  /** Whether it can happen now. */
  check(model: Readonly<Model>): boolean {
    return model.workers.length > 0
  }

  async run(model: Model, real: Real): Promise<void> {
    await this.act(model, real)
    model.spread()
    await compare(model, real)
  }

  toString(): string {
    return this.#name
  }

  protected abstract act(model: Model, real: Real): Promise<void>
}
