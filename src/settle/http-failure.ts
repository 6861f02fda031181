import type { RetryAdvice } from '../delivery/delivery.ts'
import { property } from '../runtime/property.ts'

const BY_POLICY: RetryAdvice = { kind: 'by-policy' }
const NEVER: RetryAdvice = { kind: 'never' }

/** Request timeout, too early, too many requests: the only 4xx that say "not now" instead of "not so". */
const RETRYABLE_4XX: ReadonlySet<number> = new Set([408, 425, 429])

/** A wrong header must not park an event for years: nothing a server says makes us wait longer than a day. */
export const LONGEST_RETRY_AFTER_MS = 86_400_000

/** The HTTP status (400-599) an error of any client carries; null if it carries none. */
export function httpStatusOf(error: unknown): number | null {
  const response = property(error, 'response')
  const candidates = [
    property(error, 'status'),
    property(error, 'statusCode'),
    property(response, 'status'),
    property(response, 'statusCode'),
    property(property(error, '$metadata'), 'httpStatusCode'),
  ]
  for (const status of candidates) {
    if (typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599)
      return status
  }
  return null
}

/** What an HTTP failure says about trying again; null if the error is none. */
export function adviceOfHttp(error: unknown, nowMs: number): RetryAdvice | null {
  const status = httpStatusOf(error)
  if (status === null) return null
  if (status < 500 && !RETRYABLE_4XX.has(status)) return NEVER
  const delayMs = retryAfterMs(error, nowMs)
  return delayMs === null ? BY_POLICY : { kind: 'after', delayMs }
}

function retryAfterMs(error: unknown, nowMs: number): number | null {
  const holders = [
    property(error, 'headers'),
    property(error, 'responseHeaders'),
    property(property(error, 'response'), 'headers'),
    property(property(error, '$response'), 'headers'),
  ]
  for (const headers of holders) {
    const delayMs = parseRetryAfter(headerOf(headers, 'retry-after'), nowMs)
    if (delayMs !== null) return delayMs
  }
  return null
}

/** RFC 9110: seconds, or an HTTP date. Null for anything else. */
export function parseRetryAfter(value: unknown, nowMs: number): number | null {
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text !== 'string' || text.trim() === '') return null
  const delayMs = /^\s*\d+(?:\.\d+)?\s*$/.test(text) ? Number(text) * 1_000 : dateMs(text) - nowMs
  return Number.isNaN(delayMs) ? null : Math.min(Math.max(0, delayMs), LONGEST_RETRY_AFTER_MS)
}

// Date.parse reads almost anything ("-5" is a year); an HTTP date has letters, digits and a zone.
function dateMs(text: string): number {
  return /^[A-Za-z]+,? .*\d{2}:\d{2}:\d{2}/.test(text.trim()) ? Date.parse(text) : Number.NaN
}

function headerOf(headers: unknown, name: string): unknown {
  const get = property(headers, 'get')
  if (typeof get === 'function') {
    try {
      return get.call(headers, name) as unknown
    } catch {
      return undefined
    }
  }
  return property(headers, name) ?? property(headers, 'Retry-After')
}
