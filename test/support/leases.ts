// Leases as time and workers leave them, without waiting for either.

/** Whatever runs a statement: a pool, a client. */
interface Database {
  query(text: string, values?: unknown[]): Promise<unknown>
}

const PAST = `clock_timestamp() - interval '1 ms'`

/** The leases of a worker end now, as if its time had passed on the database's clock. */
export async function lapseLeases(db: Database, workerId: string, schema?: string): Promise<void> {
  const table = (name: string): string => (schema === undefined ? name : `${schema}.${name}`)
  const set = (text: string): Promise<unknown> => db.query(text, [workerId])
  await set(`update ${table('outbox_delivery')} set locked_until = ${PAST} where locked_by = $1`)
  await set(`update ${table('outbox_lease')} set until = ${PAST} where worker_id = $1`)
  await set(`update ${table('outbox_lane')} set until = ${PAST} where owner = $1`)
  await set(`update ${table('outbox_stream')} set until = ${PAST} where owner = $1`)
  await set(`delete from ${table('outbox_worker')} where worker_id = $1`)
}

/** Writes down the leases of deliveries that were made PROCESSING by hand, as a claim does. */
export async function recordLeases(db: Database): Promise<void> {
  await db.query(`
    insert into outbox_lease (subscription_id, token, worker_id, until, lanes, positions)
    select d.subscription_id, d.lease_token, min(d.locked_by), min(d.locked_until), array_agg(distinct d.lane),
           array_agg(d.id)
      from outbox_delivery d where d.lease_token is not null
     group by d.subscription_id, d.lease_token
    on conflict do nothing`)
}
