import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import { sweepRecent } from './sweep-sql.ts'

// An ordered subscription that was active and is widened is served on while it joins: with the events of transactions
// that had ended when its snapshot was taken, of which none will be added. Whatever stands before one of them in order
// is of the same transaction or of one that had ended earlier.

// A sequence is read as it is at this moment, so that everything the snapshot has seen lies below. Only a bound for
// those who look: what has not ended by the snapshot may lie below it too.
const lastPosition = (schema: QuotedSchema): string =>
  `(select q.last_value from ${schema}.outbox_event_id_seq q)`

// A widening that is seen has committed, and whoever claimed without seeing it claimed what had ended before this
// snapshot. The events of the new part that had ended too are left out, as they would be by a subscription that
// registers now; the others get their deliveries by and by. If it is widened once more while this waits for the row, the
// snapshot is older than that, and still younger than all that was claimed.
const serveOnSql = (schema: QuotedSchema): string => `
  update ${schema}.outbox_subscription s
     set joined_snapshot = pg_current_snapshot(), served_to = ${lastPosition(schema)}, updated_at = clock_timestamp()
   where s.id = $1 and s.state = 'joining' and s.joined_snapshot is null`

// Sweeps and moves the snapshot in one statement: what had ended has its delivery, what ends later is still to be swept,
// and there is nothing between.
const serveFurtherSql = (schema: QuotedSchema): string => `
  with ${sweepRecent(schema)}
  update ${schema}.outbox_subscription t
     set joined_snapshot = pg_current_snapshot(), served_to = ${lastPosition(schema)},
         generation = t.generation + (exists (select 1 from added))::int, updated_at = clock_timestamp()
   where t.id = $1`

/**
 * Takes the snapshot that a widened ordered subscription joins by, and lets it be served on; does nothing where somebody
 * has done so. Any time after the widening has committed will do, and anybody may.
 */
export async function serveOn(client: PgClient, schema: QuotedSchema, id: string): Promise<void> {
  await rawQuery(client, serveOnSql(schema), [id])
}

/** Lets it be served with what has ended since. The caller has the row locked. */
export async function serveFurther(client: PgClient, schema: QuotedSchema, id: string): Promise<void> {
  await rawQuery(client, serveFurtherSql(schema), [id])
}
