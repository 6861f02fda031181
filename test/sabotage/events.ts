import { defineEvents, unchecked } from '../../src/index.ts'

/** What real outboxes and workers of these scenarios publish and handle. */
export const events = defineEvents({
  OrderPlaced: { stream: 'shop.order', aggregate: 'order', schema: unchecked<{ total: number }>() },
})
