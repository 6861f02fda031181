import { identityOf } from './scene-events.ts'
import type { Stage } from './stage.ts'

/** Writes down what only the tables know: the effects that committed with a handler, and what was never settled. */
export async function closeJournal({ db, journal, owed, standsFor, resolved }: Stage): Promise<void> {
  const { rows: effects } = await db.pool.query<{ n: number; event_id: string; worker: string }>(
    `select n, event_id, worker from effect where worker <> 'business'`,
  )
  const known = new Map(owed.map((event) => [event.eventId, event]))
  for (const { n, event_id: eventId, worker } of effects) {
    const event = known.get(eventId) ?? { eventId, key: 'unknown', seq: 0, does: 'nothing' }
    journal.handled(identityOf(event), { worker, attempt: 1, sequence: null }, n)
  }
  const { rows: left } = await db.pool.query<{ event_id: string; status: string }>(
    `select event_id, status from outbox_delivery where status <> 'DONE'`,
  )
  for (const { event_id: eventId, status } of left) {
    if (status === 'DEAD' && resolved.has(eventId)) continue
    journal.left(standsFor.get(eventId)?.eventId ?? eventId, status)
  }
}
