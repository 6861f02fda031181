import type { EventHeaders } from './event.ts'

const NO_HEADERS: EventHeaders = Object.freeze({})

/** A plain INSERT may have put anything JSON can hold into the headers: what is not text becomes text. */
export function parseHeaders(json: string): EventHeaders {
  if (json === '{}') return NO_HEADERS
  const parsed = JSON.parse(json) as Record<string, unknown>
  for (const [name, value] of Object.entries(parsed)) {
    if (typeof value !== 'string') parsed[name] = JSON.stringify(value)
  }
  return parsed as EventHeaders
}
