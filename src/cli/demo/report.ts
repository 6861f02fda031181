import type { Invocation } from '../command.ts'
import { renderTable } from '../text/table.ts'
import type { DemoDatabase } from './demo-database.ts'
import type { Balance, DemoResult } from './result.ts'
import type { DemoProgress } from './run-demo.ts'

/** Tells of a run of the demo as it goes on. */
export interface DemoReporter {
  readonly starting: (embedded: boolean) => void
  readonly intro: (database: DemoDatabase, rate: number, forMs: number | null) => void
  readonly progress: (progress: DemoProgress) => void
  readonly draining: () => void
  readonly result: (result: DemoResult, database: DemoDatabase) => void
}

/** For people or, with `--json`, as lines of JSON. */
export function demoReporter(invocation: Invocation<unknown>): DemoReporter {
  return invocation.globals.json ? jsonReporter(invocation) : textReporter(invocation)
}

function jsonReporter({ terminal }: Invocation<unknown>): DemoReporter {
  return {
    starting: () => undefined,
    intro: ({ embedded, shownUrl, schema }, rate, forMs) =>
      terminal.printJsonLine({ kind: 'started', url: shownUrl, schema, embedded, rate, forMs }),
    progress: (progress) => terminal.printJsonLine({ kind: 'progress', ...progress }),
    draining: () => terminal.printJsonLine({ kind: 'draining' }),
    result: (result) => terminal.printJsonLine({ kind: 'result', ...result }),
  }
}

function textReporter(invocation: Invocation<unknown>): DemoReporter {
  const { terminal, messages, formats } = invocation
  const latency = (ms: number | null): string => (ms === null ? '-' : formats.latency(ms))
  return {
    starting: (embedded) => terminal.note(messages.demo.starting(embedded)),
    intro: (database, rate, forMs) => printIntro(database, rate, forMs, invocation),
    progress: ({ published, delivered, retrying, dead, latencyMs }) =>
      terminal.printLive(
        messages.demo.progress({
          published: formats.count(published),
          delivered: formats.count(delivered),
          retrying: formats.count(retrying),
          dead: formats.count(dead),
          p50: latency(latencyMs.p50),
          p99: latency(latencyMs.p99),
        }),
      ),
    draining: () => {
      terminal.endLive()
      terminal.note(messages.demo.draining)
    },
    result: (result, database) => {
      terminal.endLive()
      printResult(result, invocation)
      if (!database.embedded) terminal.note(messages.demo.kept(database.schema, dropLine(database)))
    },
  }
}

function printIntro(
  database: DemoDatabase,
  rate: number,
  forMs: number | null,
  { terminal, messages, formats, process }: Invocation<unknown>,
): void {
  const schema = database.embedded ? '' : ` --schema ${shellWord(database.schema)}`
  const target = `--database ${shellWord(database.shownUrl)}${schema}`
  const [title = '', ...lines] = messages.demo.intro({
    embedded: database.embedded,
    address: database.address,
    schema: database.schema,
    rate: formats.count(rate),
    seconds: forMs === null ? null : formats.age(forMs / 1_000),
    psql: `psql ${shellWord(database.shownUrl)}`,
    status: `${process.program} status ${target}`,
    deadLetters: `${process.program} dlq list ${target}`,
  })
  terminal.print(terminal.style('title', title))
  terminal.print(lines.join('\n'))
}

function printResult(result: DemoResult, { terminal, messages, formats }: Invocation<unknown>): void {
  const { demo } = messages
  const verdict = (holds: boolean): string =>
    terminal.style(holds ? 'good' : 'bad', holds ? demo.verdict.good : demo.verdict.bad)
  const row = (name: string, line: Balance): readonly string[] => [
    name,
    ...[line.published, line.delivered, line.pending, line.dead].map(formats.count),
    line.holds ? '✓' : '✗',
  ]
  const number = (title: string): { title: string; align: 'right' } => ({ title, align: 'right' })
  const { columns } = demo
  const table = renderTable(
    [
      { title: columns.subscription },
      number(columns.published),
      number(columns.delivered),
      number(columns.pending),
      number(columns.dead),
      { title: columns.holds },
    ],
    [...result.subscriptions.map((line) => row(line.name, line)), row(demo.all, result.total)],
    terminal.table,
  )
  const { rolledBack, ledger, latencyMs } = result
  const latency = (ms: number | null): string => (ms === null ? '-' : formats.latency(ms))
  const lines = [
    '',
    demo.results,
    '',
    ...table,
    '',
    demo.rolledBack(formats.count(rolledBack.transactions), formats.count(rolledBack.deliveredEvents)),
    demo.ledger(
      formats.count(ledger.entries),
      formats.count(ledger.orders),
      formats.count(ledger.violations),
    ),
    demo.deadLetters(formats.count(result.total.dead)),
    demo.latency(latency(latencyMs.p50), latency(latencyMs.p99)),
    '',
    `${demo.equation(result.subscriptions.length)}: ${verdict(result.holds)}`,
  ]
  terminal.print(lines.join('\n'))
}

function dropLine({ shownUrl, quotedSchema }: DemoDatabase): string {
  return `psql ${shellWord(shownUrl)} -c ${shellWord(`drop schema ${quotedSchema} cascade`)}`
}

/** A word that a shell takes as it is, in quotes where it needs them. */
function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
