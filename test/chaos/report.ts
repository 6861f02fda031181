import type { FaultEntry } from './checker/entry.ts'
import { countAnomalies } from './checker/judge.ts'
import type { ChaosReport } from './run.ts'

/** The verdict as a table, and whatever is wrong in full. */
export function reportText(report: ChaosReport): string {
  const { verdict, seed, crashes, journals, ok } = report
  const { totals, explained, tooSlow } = verdict
  const lines = [
    `committed ${totals.committed}, rolled back ${totals.rolledBack}, unknown and not there ${totals.unknown}; ` +
      `handlers ran ${totals.runs} times; ${totals.faults} faults`,
    '',
    ...Object.entries(countAnomalies(verdict)).map(([name, count]) => row(name, count)),
    row('too slow', tooSlow.length),
    row('crashed by itself', crashes.length),
    '',
    `explained duplicates ${explained.duplicates.length}, explained overlaps ${explained.overlaps.length}`,
    '',
    ...recoveryLines(report),
    '',
    ...crashes,
    ...report.evidence.flatMap(evidenceLines),
    ok ? `clean (seed ${seed})` : `NOT CLEAN: seed ${seed}, journals kept in ${journals}`,
  ]
  return lines.join('\n')
}

function row(name: string, count: number): string {
  return `  ${name.padEnd(20)} ${String(count).padStart(6)}  ${count === 0 ? 'ok' : 'FAILED'}`
}

/** The longest recovery of each kind of fault. */
function recoveryLines({ verdict }: ChaosReport): readonly string[] {
  const worst = new Map<FaultEntry['name'], { readonly ms: number; readonly count: number }>()
  for (const { name, ms } of verdict.recoveries) {
    const before = worst.get(name) ?? { ms: 0, count: 0 }
    worst.set(name, { ms: Math.max(before.ms, ms), count: before.count + 1 })
  }
  const rows = [...worst].map(
    ([name, { ms, count }]) => `  ${name.padEnd(20)} ${String(count).padStart(4)} x  longest ${ms} ms`,
  )
  return ['recovery after', ...rows]
}

function evidenceLines({
  anomaly,
  finding,
  journal,
  rows,
}: ChaosReport['evidence'][number]): readonly string[] {
  const { eventId, subscription, text } = finding
  return [
    `${anomaly}: event ${eventId}, subscription ${subscription ?? '-'}: ${text}`,
    ...journal.map((line) => `  journal   ${JSON.stringify(line)}`),
    ...rows.map((line) => `  database  ${JSON.stringify(line)}`),
    '',
  ]
}
