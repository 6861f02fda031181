import type { Catalogue } from '../../event/catalogue.ts'
import { defineEvents, type TypesOfSchemas } from '../../event/define-events.ts'
import { type StandardSchemaV1, unchecked } from '../../event/standard-schema.ts'

/** What every event of the shop says. */
export interface OrderFacts {
  readonly customer: string
  readonly amount: number
}

type OrderSchema = StandardSchemaV1<OrderFacts, OrderFacts>

/** The events of the shop. */
export type ShopCatalogue = Catalogue<
  TypesOfSchemas<{ OrderPlaced: OrderSchema; OrderPaid: OrderSchema; OrderShipped: OrderSchema }>
>

/** The names of the shop's events. */
export type ShopEvent = 'OrderPlaced' | 'OrderPaid' | 'OrderShipped'

const definition = {
  stream: 'shop.order.event',
  aggregate: 'order',
  schema: unchecked<OrderFacts>(),
  // 1, 2, 3 … for each order, so that the ledger can tell whether one is missing.
  sequence: true,
}

/** Makes the catalogue: three events of one stream, numbered within their order. */
export function shopEvents(): ShopCatalogue {
  return defineEvents({ OrderPlaced: definition, OrderPaid: definition, OrderShipped: definition })
}
