import type { Logger, LogLevel, LogLine } from '../observe/logger.ts'
import { type Clock, systemClock } from '../runtime/clock.ts'
import type { Formats } from '../runtime/formats.ts'
import { redact } from '../runtime/redact.ts'
import { describeError } from '../runtime/text.ts'
import type { Style, Terminal } from './terminal.ts'
import { safeJson, safeLine } from './text/safe.ts'

/** What a logger for people is made of. */
export interface LineLoggerParts {
  readonly terminal: Terminal
  readonly formats: Formats
  readonly clock?: Clock
}

const STYLES: Readonly<Record<LogLevel, Style>> = {
  debug: 'faint',
  info: 'good',
  warn: 'warning',
  error: 'bad',
}

/** Logs for a person: time, level, sentence, then the facts as name=value. */
export function lineLogger({ terminal, formats, clock = systemClock }: LineLoggerParts): Logger {
  const line =
    (level: LogLevel): LogLine =>
    (fields, message) => {
      const head = `${formats.time(clock.now())} ${terminal.style(STYLES[level], level.toUpperCase())}`
      const facts = Object.entries(fields).flatMap(([name, value]) => factOf(name, value))
      terminal.print([head, redact(safeLine(message)), ...facts].join(' '))
    }
  return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') }
}

/** The logger without the lines that only tell that all is well. */
export function warningsOf(logger: Logger): Logger {
  const ignore: LogLine = () => undefined
  const isLevelEnabled = (level: LogLevel): boolean => level === 'warn' || level === 'error'
  return { ...logger, debug: ignore, info: ignore, isLevelEnabled }
}

/** The logger without its most detailed lines. */
export function withoutDebug(logger: Logger): Logger {
  return { ...logger, debug: () => undefined, isLevelEnabled: (level) => level !== 'debug' }
}

function rounded(value: unknown): unknown {
  return typeof value === 'number' ? Math.round(value * 10) / 10 : value
}

function factOf(name: string, value: unknown): readonly string[] {
  if (value === null || value === undefined) return []
  const text = value instanceof Error ? describeError(value) : rounded(value)
  const shown = typeof text === 'string' && /^[\w.:@/-]+$/.test(text) ? text : safeJson(text)
  return [`${name}=${redact(safeLine(shown ?? ''))}`]
}
