// The tables of bench/README.md, from the files of figures.
import { short } from './report.ts'
import { Results } from './results.ts'
import type { FiguresFile } from './results-file.ts'

type Row = readonly string[]
type Column = readonly [heading: string, scenario: string, figure: string]

/** Every table by the name that marks its place. */
export function readmeTables(core: FiguresFile, stream: FiguresFile): ReadonlyMap<string, string> {
  return new Map([
    ['core: machine', machineOf(core)],
    [
      'core: drain',
      figuresOf(core, [
        ['jobs/s', 'drain', 'perSecond'],
        ['CPU per job, Node, µs', 'drain', 'nodeMicros'],
        ['CPU per job, PostgreSQL, µs', 'drain', 'postgresMicros'],
      ]),
    ],
    ['core: bars', barsOf(core)],
    [
      'core: latency',
      figuresOf(core, [
        ['p50, ms', 'latency', 'p50Ms'],
        ['p99, ms', 'latency', 'p99Ms'],
      ]),
    ],
    ['stream: machine', machineOf(stream)],
    [
      'stream: rates',
      figuresOf(stream, [
        ['no-op, events/s', 'no-op', 'perSecond'],
        ['Kafka, events/s', 'kafka', 'perSecond'],
        ['no-op, p50, ms', 'no-op-latency', 'p50Ms'],
        ['p99', 'no-op-latency', 'p99Ms'],
        ['Kafka, p50, ms', 'kafka-latency', 'p50Ms'],
        ['p99', 'kafka-latency', 'p99Ms'],
      ]),
    ],
    ['stream: bars', barsOf(stream)],
  ])
}

/**
 * The page with every table at its place, which begins with a comment that names it.
 * @throws Error when a table has no place.
 */
export function withTables(page: string, tables: ReadonlyMap<string, string>): string {
  return [...tables].reduce((text, [name, content]) => {
    const begin = `<!-- ${name} -->\n\n`
    const start = text.indexOf(begin)
    const end = text.indexOf('\n\n<!-- end -->', start)
    if (start < 0 || end < 0) {
      throw new Error(`The page has no place for a table: <!-- ${name} -->, a blank line, …, <!-- end -->.`)
    }
    return text.slice(0, start + begin.length) + content + text.slice(end)
  }, page)
}

function machineOf({ machine, versions, rounds }: FiguresFile): string {
  const results = new Results(rounds)
  const scenarios = [...new Set(rounds.map(({ scenario }) => scenario))]
  const counts = scenarios.map((scenario) => `\`${scenario}\` ${results.nextRound(scenario) - 1}`)
  return (
    `${machine.cores} cores of ${machine.cpu}, ${machine.memoryGigabytes} GB, Node ${versions['node']}, ` +
    `PostgreSQL ${versions['postgres']}; medians of so many rounds: ${counts.join(', ')}.`
  )
}

/** Whoever was measured, the fastest first, or in the order of the run where there is no rate. */
function figuresOf({ rounds }: FiguresFile, columns: readonly Column[]): string {
  const results = new Results(rounds)
  const contenders = [...new Set(columns.flatMap(([, scenario]) => results.contenders(scenario)))]
  const rateOf = (contender: string): number =>
    Math.max(
      ...columns.map(([, scenario, figure]) =>
        figure === 'perSecond' ? (results.median(scenario, contender, figure) ?? 0) : 0,
      ),
    )
  const rows = contenders
    .toSorted((a, b) => rateOf(b) - rateOf(a) || a.localeCompare(b))
    .map((contender) => [
      contender,
      ...columns.map(([, scenario, figure]) => short(results.median(scenario, contender, figure))),
    ])
  return table([['', ...columns.map(([heading]) => heading)], ...rows])
}

function barsOf({ bars }: FiguresFile): string {
  const rows = bars.map((each) => [
    each.name,
    short(each.figure),
    `${each.is} ${short(each.bar)}`,
    each.met ? 'met' : '**missed**',
  ])
  return table([['', 'figure', 'bar', ''], ...rows])
}

function table([head = [], ...rows]: readonly Row[]): string {
  const widths = head.map((_, column) =>
    Math.max(3, ...[head, ...rows].map((row) => (row[column] ?? '').length)),
  )
  const line = (row: Row): string =>
    `| ${widths.map((width, at) => (row[at] ?? '').padEnd(width)).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}
