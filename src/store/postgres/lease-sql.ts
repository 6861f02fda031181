import { type QuotedSchema, sequenceName } from './identifiers.ts'

/** How many bits of a lease's token are drawn by lot. */
const LOT_BITS = 20

/**
 * The SQL expression of a new lease's token: the next number, and a lot behind it. A server that lost commits and took
 * another's place gives the numbers again, as it does positions: by the number alone, the late result of an event that is
 * lost with them would be taken for that of the event that has its position now. So does a server that crashes with claims
 * which did not wait for the disk (claim-flush.ts).
 */
export const newLeaseToken = (schema: QuotedSchema): string =>
  `((nextval(${sequenceName(schema, 'outbox_lease_token')}) << ${LOT_BITS}) + floor(random() * ${2 ** LOT_BITS})::bigint)`

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
