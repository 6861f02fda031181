import type { Entry, Finding } from './checker/entry.ts'
import type { Verdict } from './checker/judge.ts'

/** All that is known of something that is wrong. */
export interface Evidence {
  readonly anomaly: string
  readonly finding: Finding
  readonly journal: readonly Entry[]
  readonly rows: readonly unknown[]
}

/** One bug may show in thousands of events. */
const MOST_PER_ANOMALY = 5

/** Gathers what was written down of the first findings of each kind, and what the database knows of them. */
export async function evidenceOf(
  { anomalies }: Verdict,
  entries: readonly Entry[],
  rowsOf: (eventId: string) => Promise<readonly unknown[]>,
): Promise<readonly Evidence[]> {
  const named = Object.entries(anomalies).flatMap(([anomaly, findings]) =>
    (findings as readonly Finding[]).slice(0, MOST_PER_ANOMALY).map((finding) => ({ anomaly, finding })),
  )
  return await Promise.all(
    named.map(async ({ anomaly, finding }) => ({
      anomaly,
      finding,
      journal: linesOf(finding.eventId, entries),
      // What is wrong is known without them.
      rows: await rowsOf(finding.eventId).catch((error: unknown) => [`not read: ${String(error)}`]),
    })),
  )
}

/** The lines that name the event, its transaction or its runs. */
function linesOf(eventId: string, entries: readonly Entry[]): readonly Entry[] {
  const names = new Set<string>()
  for (const entry of entries) {
    if (entry.kind === 'begun' && entry.events.some((event) => event.eventId === eventId)) {
      names.add(entry.transaction)
    }
    if (entry.kind === 'seen' && entry.eventId === eventId) names.add(entry.run)
  }
  return entries
    .filter(
      (entry) =>
        ('eventId' in entry && entry.eventId === eventId) ||
        ('transaction' in entry && names.has(entry.transaction)) ||
        ('run' in entry && names.has(entry.run)),
    )
    .toSorted((a, b) => a.at - b.at)
}
