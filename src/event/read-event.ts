import { type CheckedPayload, checkPayload } from './check-payload.ts'
import { type PayloadIssue, UnreadablePayloadError } from './errors.ts'
import type { JsonObject, OutboxEvent } from './event.ts'
import type { EventSpec } from './event-spec.ts'
import { thrownText } from './thrown-text.ts'

/** A stored event as current code sees it. At once, unless the schema is asynchronous. */
export function readEvent(spec: EventSpec, event: OutboxEvent): OutboxEvent | Promise<OutboxEvent> {
  const needsUpcast = event.schemaVersion < spec.version && spec.upcast.size > 0
  if (event.schemaVersion < spec.oldestVersion) throw tooOld(spec, event)
  const payload = needsUpcast ? upcastPayload(spec, event) : event.payload
  const version = needsUpcast ? spec.version : event.schemaVersion
  const checked = checkPayload(spec, payload)
  if (checked instanceof Promise) return checked.then((settled) => finished(spec, event, settled, version))
  return finished(spec, event, checked, version)
}

function finished(
  spec: EventSpec,
  event: OutboxEvent,
  checked: CheckedPayload,
  version: number,
): OutboxEvent {
  if (!checked.ok) throw unreadable('PAYLOAD_INVALID', spec, event, checked.issues)
  const unchanged =
    checked.value === event.payload && spec.name === event.type && version === event.schemaVersion
  if (unchanged) return event
  return { ...event, type: spec.name, schemaVersion: version, payload: checked.value }
}

/** From the stored version step by step to the current one. */
function upcastPayload(spec: EventSpec, event: OutboxEvent): unknown {
  let payload: unknown = event.payload
  for (let version = event.schemaVersion; version < spec.version; version += 1) {
    payload = upcastOnce(spec, event, version, payload)
  }
  return payload
}

function upcastOnce(spec: EventSpec, event: OutboxEvent, version: number, payload: unknown): unknown {
  const upcaster = spec.upcast.get(version)
  if (upcaster === undefined) throw upcastFailed(spec, event, `there is no upcaster from version ${version}`)
  let next: unknown
  try {
    // What was stored is JSON; that it is an object is for the upcaster's author to know.
    next = upcaster(payload as JsonObject)
  } catch (error) {
    throw upcastFailed(
      spec,
      event,
      `the upcaster from version ${version} threw: ${thrownText(spec, error)}`,
      error,
    )
  }
  if (next === undefined)
    throw upcastFailed(spec, event, `the upcaster from version ${version} returned nothing`)
  if (next instanceof Promise) {
    next.catch(() => undefined) // it must not also become an unhandled rejection
    throw upcastFailed(
      spec,
      event,
      `the upcaster from version ${version} returned a promise; it must be synchronous`,
    )
  }
  return next
}

function tooOld(spec: EventSpec, event: OutboxEvent): UnreadablePayloadError {
  return upcastFailed(spec, event, `the oldest version this code reads is ${spec.oldestVersion}`)
}

function upcastFailed(
  spec: EventSpec,
  event: OutboxEvent,
  message: string,
  cause?: unknown,
): UnreadablePayloadError {
  return unreadable('UPCAST_FAILED', spec, event, [{ path: 'payload', message }], cause)
}

function unreadable(
  code: 'PAYLOAD_INVALID' | 'UPCAST_FAILED',
  spec: EventSpec,
  event: OutboxEvent,
  issues: readonly PayloadIssue[],
  cause?: unknown,
): UnreadablePayloadError {
  const about = {
    eventId: event.eventId,
    type: spec.name,
    storedVersion: event.schemaVersion,
    knownVersion: spec.version,
  }
  return new UnreadablePayloadError(code, about, issues, cause === undefined ? undefined : { cause })
}
