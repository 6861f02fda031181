import type { VerifyRequest } from '../proof-store.ts'
import { type PgClient, rawQuery } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'

/** The positions that are looked at, first and last. */
export interface PositionRange {
  readonly first: string
  readonly last: string
}

const WHOLE: PositionRange = { first: '-9223372036854775808', last: '9223372036854775807' }
const EMPTY: PositionRange = { first: '1', last: '0' }

/** Whether a range leaves nothing out, at either end. */
export function isWhole({ first, last }: PositionRange): boolean {
  return first === WHOLE.first && last === WHOLE.last
}

// A window of time is cut out by positions, because deliveries have these and not the time of their event: from the
// first to the last event of that time. The few others between them, of transactions that went on at its edges, belong
// to it on both sides of the equation. Only the edges are looked for, nearer ones first: the whole window would be read
// once more.
const MINUTE_MS = 60_000
const REACHES_MS = [MINUTE_MS, 60 * MINUTE_MS, 1_440 * MINUTE_MS, Number.POSITIVE_INFINITY]

const edgeSql = (schema: QuotedSchema): string => `
  select min(w.first), max(w.last) from (
    select min(e.id) as first, max(e.id) as last from ${schema}.outbox_event e
     where e.created_at >= (select $1::text::timestamptz) and e.created_at < (select $2::text::timestamptz)
    union all
    select min(a.position), max(a.position) from ${schema}.outbox_archived a
     where a.created_at >= (select $1::text::timestamptz) and a.created_at < (select $2::text::timestamptz)) w`

/** The positions of the events of a window. */
export async function positionRange(
  client: PgClient,
  schema: QuotedSchema,
  { since, until }: Pick<VerifyRequest, 'since' | 'until'>,
): Promise<PositionRange> {
  // What has no event has no time: it belongs to the end that is open.
  const first = since === null ? WHOLE.first : await edge(client, schema, since, until, 'first')
  const last = until === null ? WHOLE.last : await edge(client, schema, since, until, 'last')
  return first === null || last === null ? EMPTY : { first, last }
}

async function edge(
  client: PgClient,
  schema: QuotedSchema,
  since: Date | null,
  until: Date | null,
  which: keyof PositionRange,
): Promise<string | null> {
  const from = since?.getTime() ?? Number.NEGATIVE_INFINITY
  const to = until?.getTime() ?? Number.POSITIVE_INFINITY
  for (const reachMs of REACHES_MS) {
    const bounds =
      which === 'first' ? [from, Math.min(to, from + reachMs)] : [Math.max(from, to - reachMs), to]
    const [row] = await rawQuery(client, edgeSql(schema), bounds.map(timeText))
    const found = row?.[which === 'first' ? 0 : 1] ?? null
    if (found !== null) return found
  }
  return null
}

function timeText(ms: number): string {
  if (Number.isFinite(ms)) return new Date(ms).toISOString()
  return ms < 0 ? '-infinity' : 'infinity'
}
