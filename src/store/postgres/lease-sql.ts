import type { QuotedSchema } from './identifiers.ts'

/**
 * A CTE that writes down what a claim takes: its rows are in a CTE `claimed`, its token in a CTE `lease`. Without it
 * nobody would find them again if the worker vanished. The parameters are SQL expressions: until when no delivery of the
 * claim lapses, and the lanes that they may stand in.
 */
export const recordLease = (
  schema: QuotedSchema,
  { until, lanes }: { readonly until: string; readonly lanes: string },
): string => `
  recorded as (
    insert into ${schema}.outbox_lease (subscription_id, token, worker_id, until, lanes, positions)
    select $1, (select token from lease), $2, ${until}, ${lanes}, c.positions
      from (select array_agg(id) as positions from claimed) c
     where c.positions is not null
  )`
