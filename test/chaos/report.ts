import { groupBy } from './checker/group-by.ts'
import { countAnomalies } from './checker/judge.ts'
import type { Recovery } from './checker/recovery.ts'
import type { Repetition } from './checker/repetition.ts'
import type { ChaosReport } from './run.ts'

/** So many of a kind are listed; `--json` names all. */
const MOST_LISTED = 20

/** The verdict as a table, and whatever is wrong in full. */
export function reportText(report: ChaosReport): string {
  const { verdict, seed, crashes, journals, missed, ok } = report
  const { totals, explained, tooSlow } = verdict
  const lines = [
    `committed ${totals.committed}, rolled back ${totals.rolledBack}, unknown and seen by nobody ${totals.unknown}; ` +
      `handlers ran ${totals.runs} times; ${totals.faults} faults, ${missed.length} that found nothing to break` +
      (missed.length === 0 ? '' : `: ${missed.map(({ id }) => id).join(', ')}`),
    `a fault would have excused a repetition of ${totals.excused} runs (${shareText(totals.excused, totals.runs)})`,
    '',
    ...Object.entries(countAnomalies(verdict)).map(([name, count]) => row(name, count)),
    row('too slow', tooSlow.length),
    row('not as told', crashes.length),
    '',
    ...recoveryLines(report),
    '',
    ...explainedLines('duplicates', explained.duplicates),
    ...explainedLines('overlaps', explained.overlaps),
    '',
    ...crashes,
    ...report.evidence.flatMap(evidenceLines),
    ok ? `clean (seed ${seed})` : `NOT CLEAN: seed ${seed}, journals kept in ${journals}`,
  ]
  return lines.join('\n')
}

function shareText(some: number, all: number): string {
  return `${all === 0 ? 0 : Math.round((100 * some) / all)} %`
}

function row(name: string, count: number): string {
  return `  ${name.padEnd(20)} ${String(count).padStart(6)}  ${count === 0 ? 'ok' : 'FAILED'}`
}

/** Of each kind of fault: how many there were, what they explain, and how long recovery took. */
function recoveryLines({ verdict }: ChaosReport): readonly string[] {
  const { recoveries, explained } = verdict
  const rows = [...groupBy(recoveries, ({ name }) => name)].map(([name, faults]) => {
    const ids = new Set<string | null>(faults.map(({ fault }) => fault))
    const repeated = explained.duplicates.filter(({ fault }) => ids.has(fault)).length
    const figures = [faults.length, repeated, longest(faults, 'aloneMs'), longest(faults, 'ms')]
    return `  ${name.padEnd(20)} ${figures.map((figure) => String(figure).padStart(10)).join('')}`
  })
  return [
    'recovery, in ms: alone is the longest without, overall the longest with other faults falling into it',
    `  ${'fault'.padEnd(20)} ${['times', 'duplicates', 'alone', 'overall'].map((title) => title.padStart(10)).join('')}`,
    ...rows,
    `  the longest after the last fault: ${longest(recoveries, 'sinceMs')}`,
  ]
}

function longest(faults: readonly Recovery[], figure: 'ms' | 'aloneMs' | 'sinceMs'): number {
  return faults.reduce((most, fault) => Math.max(most, fault[figure]), 0)
}

function explainedLines(what: string, repetitions: readonly Repetition[]): readonly string[] {
  const rest = repetitions.length - MOST_LISTED
  return [
    `explained ${what}: ${repetitions.length}`,
    ...repetitions
      .slice(0, MOST_LISTED)
      .map(
        ({ eventId, subscription, text, fault }) => `  ${fault}: ${subscription}, event ${eventId}: ${text}`,
      ),
    ...(rest > 0 ? [`  and ${rest} more, see --json`] : []),
  ]
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
