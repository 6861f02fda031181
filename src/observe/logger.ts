import type { EventIdentity } from '../event/event.ts'
import { traceIdOf } from '../event/trace-context.ts'
import { type Clock, systemClock } from '../runtime/clock.ts'
import { functionProblem, refuseProblems } from '../runtime/option-checks.ts'
import { describeError } from '../runtime/text.ts'

/** Writes one structured line: facts first, then a sentence. */
export type LogLine = (fields: object, message: string) => void

/** The logger this library talks to. pino and bunyan fit as they are; payloads are never given to it. */
export interface Logger {
  readonly debug: LogLine
  readonly info: LogLine
  readonly warn: LogLine
  readonly error: LogLine
  /**
   * Whether lines of this level are written at all, asked where there would be a line for every event. pino has it.
   * @default they are
   */
  isLevelEnabled?(level: LogLevel): boolean
}

/** The levels of a `Logger`. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** What a `Logger` must be able to do. */
export const LOGGER_METHODS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

const ignore: LogLine = () => {}

/** Says nothing. */
export const silentLogger: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore }

/** Writes each line as one JSON object with time, level and msg; `write` gets it without the line end. */
export function jsonLineLogger(write: (line: string) => void, clock: Clock = systemClock): Logger {
  refuseProblems('jsonLineLogger', [functionProblem('write', write ?? null)])
  const line =
    (level: LogLevel): LogLine =>
    (fields, message) =>
      write(jsonLine({ time: clock.now().toISOString(), level, msg: message }, fields))
  return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') }
}

function jsonLine(head: object, fields: object): string {
  try {
    return JSON.stringify({ ...head, ...fields, ...head }, asJson)
  } catch {
    // Circular, or a getter that throws: the sentence is worth more than its fields.
    return JSON.stringify(head)
  }
}

function asJson(_key: string, value: unknown): unknown {
  if (value instanceof Error) return describeError(value)
  return typeof value === 'bigint' ? value.toString() : value
}

/** Whether to make lines of this level. */
export function isWanted(logger: Logger, level: LogLevel): boolean {
  return logger.isLevelEnabled?.(level) !== false
}

/** The logger with these fields on every line; a line's own fields of the same name give way to them. */
export function withFields(logger: Logger, fields: object): Logger {
  if (logger === silentLogger) return logger
  // Called as methods of the logger: pino's lines need their `this`.
  return {
    debug: (own, message) => logger.debug({ ...own, ...fields }, message),
    info: (own, message) => logger.info({ ...own, ...fields }, message),
    warn: (own, message) => logger.warn({ ...own, ...fields }, message),
    error: (own, message) => logger.error({ ...own, ...fields }, message),
    isLevelEnabled: (level) => isWanted(logger, level),
  }
}

/** What every log line about an event carries. */
export interface EventFields {
  /** Null where the event carries no trace. */
  readonly traceId: string | null
  readonly eventId: string
  readonly stream: string
  readonly eventType: string
  readonly aggregateType: string
  readonly aggregateId: string
}

/** The fields of an event that may be logged: its identity, never its payload. */
export function eventFields(event: EventIdentity): EventFields {
  return {
    traceId: traceIdOf(event.headers),
    eventId: event.eventId,
    stream: event.stream,
    eventType: event.type,
    aggregateType: event.aggregateType,
    aggregateId: event.aggregateId,
  }
}
