import { CommitpostError } from '../../runtime/errors.ts'
import { property } from '../../runtime/property.ts'
import type { Transaction } from '../transaction.ts'
import type { QuotedSchema } from './identifiers.ts'

// Waits for a transaction that records the same event at this moment, and then sees what became of it. No column in
// RETURNING, so that INSERT is the only right it needs.
const recordOnceSql = (schema: QuotedSchema): string => `
  insert into ${schema}.outbox_inbox (subscription, event_id)
  values ($1::text, $2::text::uuid)
  on conflict do nothing
  returning 1`

/** Records an event in the handler's own transaction. False when it was recorded before. */
export async function recordOnce(
  tx: Transaction,
  schema: QuotedSchema,
  subscription: string,
  eventId: string,
): Promise<boolean> {
  const rows: unknown = property(await tx.query(recordOnceSql(schema), [subscription, eventId]), 'rows')
  if (Array.isArray(rows)) return rows.length > 0
  throw new CommitpostError(
    'INVALID_STATE',
    'ctx.once cannot tell whether this event was handled before: the query method of the transaction handle must ' +
      'resolve with { rows, rowCount }.',
  )
}
