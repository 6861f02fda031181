import { truncate } from '../runtime/width.ts'
import { safeJson } from './text/safe.ts'
import type { TableStyle } from './text/table.ts'

/** What sets a text off. */
export type Style = 'title' | 'good' | 'warning' | 'bad' | 'faint'

/** Where a command writes: data to the standard output, everything said about it to the standard error. */
export interface Terminal {
  /** One line, or several, of data. */
  print(text: string): void
  /** The value as one JSON document, for `--json`. */
  printJson(value: unknown): void
  /** The value as one line of JSON, for output that goes on. */
  printJsonLine(value: unknown): void
  /** A remark, a question, a problem. */
  note(text: string): void
  /** A line that takes the place of the one before it where that is possible, else follows it. */
  printLive(line: string): void
  /** Ends the live line, so that what comes next starts on a line of its own. */
  endLive(): void
  /** The text set off, where colours are wanted. */
  style(style: Style, text: string): string
  readonly table: TableStyle
}

/** The part of a stream that is written to. */
export interface TerminalStream {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

/** What a terminal is made of. */
export interface TerminalParts {
  readonly stdout: TerminalStream
  readonly stderr: TerminalStream
  readonly env: Readonly<Record<string, string | undefined>>
}

const CODES: Readonly<Record<Style, number>> = { title: 1, faint: 2, bad: 31, good: 32, warning: 33 }

const DEFAULT_COLUMNS = 80
const STYLE_CODES = /\u001b\[\d+m/g

/** The terminal of a process, or of a test. */
export function createTerminal({ stdout, stderr, env }: TerminalParts): Terminal {
  const colours = wantsColours(stdout, env)
  const notesInColours = wantsColours(stderr, env)
  const rewrites = stdout.isTTY === true && env['TERM'] !== 'dumb'
  // A terminal without a size says 0.
  const width = stdout.isTTY === true && stdout.columns ? stdout.columns : null
  let isLive = false
  const style = (name: Style, text: string): string =>
    colours ? `\u001b[${CODES[name]}m${text}\u001b[0m` : text
  return {
    print: (text) => stdout.write(`${text}\n`),
    printJson: (value) => stdout.write(`${safeJson(value, 2)}\n`),
    printJsonLine: (value) => stdout.write(`${safeJson(value)}\n`),
    note: (text) => stderr.write(`${notesInColours ? text : text.replace(STYLE_CODES, '')}\n`),
    printLive: (line) => {
      isLive = rewrites
      stdout.write(rewrites ? `\r\u001b[2K${truncate(line, liveWidth(stdout) - 1)}` : `${line}\n`)
    },
    endLive: () => {
      if (isLive) stdout.write('\n')
      isLive = false
    },
    style,
    table: { width, title: (text) => style('title', text) },
  }
}

/** Asked for each line: windows change their size. */
function liveWidth({ columns }: TerminalStream): number {
  return columns || DEFAULT_COLUMNS
}

/** As no-color.org has it: NO_COLOR wins over all, FORCE_COLOR over the kind of output. */
function wantsColours(stream: TerminalStream, env: TerminalParts['env']): boolean {
  if (env['NO_COLOR']) return false
  if (env['FORCE_COLOR']) return env['FORCE_COLOR'] !== '0'
  return stream.isTTY === true && env['TERM'] !== 'dumb'
}
