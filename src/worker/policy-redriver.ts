import type { Observer } from '../observe/worker-events.ts'
import type { PolicyRedrive, PolicyStore } from '../store/redrive-store.ts'

/** What re-driving by policy is made of. */
export interface PolicyRedriverParts {
  readonly store: PolicyStore
  readonly observer: Observer
  readonly subscriptions: readonly {
    readonly redrive: PolicyRedrive | null
    readonly runner: { readonly subscriptionId: number; readonly name: string; wake(): void }
  }[]
}

/** Re-drives what the policies of a worker's subscriptions name. Any number of workers may do it at the same time. */
export class PolicyRedriver {
  readonly #parts: PolicyRedriverParts

  constructor(parts: PolicyRedriverParts) {
    this.#parts = parts
  }

  /** One bounded step for each subscription that has a policy. */
  async redrive(): Promise<void> {
    const { store, observer, subscriptions } = this.#parts
    for (const { redrive: policy, runner } of subscriptions) {
      if (policy === null) continue
      const { redriven, leftToPerson } = await store.redriveByPolicy(runner.subscriptionId, policy)
      if (redriven + leftToPerson === 0) continue
      observer({
        kind: 'redriven',
        subscription: runner.name,
        policy: policy.name,
        count: redriven,
        leftToPerson,
      })
      if (redriven > 0) runner.wake()
    }
  }
}
