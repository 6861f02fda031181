import { defineEvents, unchecked } from '../../src/index.ts'

/** What the program `alert-worker` is told, as JSON in its first argument. */
export interface AlertWorkerConfig {
  readonly workerId: string
  readonly url: string
  readonly schema: string
  /** Where it posts its alerts, signed by the secret. */
  readonly receiver: string
  readonly secret: string
  readonly unresolved: number
}

/** The events of that program. */
export const shopOrders = defineEvents({
  OrderPlaced: { stream: 'shop.order', aggregate: 'order', schema: unchecked<{ n: number }>() },
})
