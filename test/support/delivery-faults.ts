import type pg from 'pg'

/** What is wrong with the tables, by name and with whom it concerns. Empty when they are consistent. */
export type DeliveryFaults = Readonly<Record<string, readonly string[]>>

const CHECKS = {
  /** published = pending + processing + done + dead, event by event. */
  undelivered: `
    select e.event_id from outbox_event e cross join outbox_subscription s
     where e.event_id = any ($1::uuid[]) and s.state = 'active'
       and not exists (select 1 from outbox_delivery d where d.event_id = e.event_id and d.subscription_id = s.id)`,
  'delivered twice': `
    select d.event_id from outbox_delivery d where $1::uuid[] is not null
     group by d.subscription_id, d.event_id having count(*) > 1`,
  'without its event': `
    select d.event_id from outbox_delivery d
     where $1::uuid[] is not null and not exists (select 1 from outbox_event e where e.event_id = d.event_id)`,
  'dead without a letter': `
    select d.event_id from outbox_delivery d
     where $1::uuid[] is not null and d.status = 'DEAD' and not exists (
       select 1 from outbox_dead_letter l where l.event_id = d.event_id and l.subscription_id = d.subscription_id)`,
  'open letter of one that is not dead': `
    select l.event_id from outbox_dead_letter l
      join outbox_delivery d on d.event_id = l.event_id and d.subscription_id = l.subscription_id
     where $1::uuid[] is not null and not l.resolved and d.status <> 'DEAD'`,
  'two open letters': `
    select l.event_id from outbox_dead_letter l where $1::uuid[] is not null and not l.resolved
     group by l.event_id, l.subscription_id having count(*) > 1`,
  'lease beyond its lane': `
    select d.event_id from outbox_delivery d join outbox_lane l using (subscription_id, lane)
     where $1::uuid[] is not null and d.status = 'PROCESSING' and d.locked_until > l.until`,
  'more attempts than allowed': `
    select d.event_id from outbox_delivery d where $1::uuid[] is not null and d.attempt_count > d.max_attempts`,
}

/** Reads the tables at any moment, whatever is under way, and names every inconsistency. */
export async function deliveryFaults(
  client: Pick<pg.Pool, 'query'>,
  owed: readonly string[],
): Promise<DeliveryFaults> {
  const faults: Record<string, readonly string[]> = {}
  for (const [name, sql] of Object.entries(CHECKS)) {
    const { rows } = await client.query<{ event_id: string }>(sql, [owed])
    if (rows.length > 0) faults[name] = rows.map(({ event_id }) => event_id)
  }
  return faults
}
