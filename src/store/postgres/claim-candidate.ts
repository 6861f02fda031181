import { type PgPool, rawQuery, withClient } from './client.ts'

/** A delivery that a claim would take, or park. */
export interface Candidate {
  readonly position: string
  readonly eventId: string
  readonly key: string | null
}

/** Reads candidates by a statement that selects position, event id and key. */
export async function readCandidates(
  pool: PgPool,
  text: string,
  values: readonly unknown[],
): Promise<readonly Candidate[]> {
  const rows = await withClient(pool, (client) => rawQuery(client, text, values))
  return rows.map(([position, eventId, key = null]) => ({
    position: position as string,
    eventId: eventId as string,
    key,
  }))
}
