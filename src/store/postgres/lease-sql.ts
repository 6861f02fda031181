import type { QuotedSchema } from './identifiers.ts'

/**
 * A CTE that writes down what a claim takes, its token being in a CTE `lease`. Without it nobody would find the deliveries
 * again if the worker vanished. The parameters are SQL expressions: until when no delivery of the claim lapses, the lanes
 * that they may stand in, and the positions of them all; one that was not taken after all does no harm.
 */
export const recordLease = (
  schema: QuotedSchema,
  { until, lanes, positions }: { readonly until: string; readonly lanes: string; readonly positions: string },
): string => `
  recorded as (
    insert into ${schema}.outbox_lease (subscription_id, token, worker_id, until, lanes, positions)
    select $1, (select token from lease), $2, ${until}, ${lanes}, p.positions
      from (select ${positions} as positions) p
     where cardinality(p.positions) > 0
  )`
