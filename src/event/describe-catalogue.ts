import { refuseProblems, shown } from '../runtime/option-checks.ts'
import { property } from '../runtime/property.ts'
import type { Catalogue } from './catalogue.ts'
import type { JsonObject, JsonValue } from './event.ts'
import { type EventSpec, jsonSchemaOf } from './event-spec.ts'
import type { EventKind } from './names.ts'

/** A catalogue as plain JSON: what a snapshot file holds and what two versions are compared by. */
export interface CatalogueDescription {
  readonly format: 1
  /** Sorted by name. */
  readonly events: readonly EventDescription[]
}

/** One event of a description. */
export interface EventDescription {
  readonly name: string
  readonly storedAs: string
  readonly kind: EventKind
  readonly stream: string
  readonly aggregate: string
  readonly version: number
  readonly oldestVersion: number
  /** The oldest version that upcasters lead on from; null where there are none. */
  readonly upcastsFrom: number | null
  readonly sequenced: boolean
  /** Of the payload as stored; null where the schema library cannot tell it and `jsonSchema` was not given. */
  readonly jsonSchema: JsonObject | null
  readonly sensitive: readonly string[]
}

/** Describes a catalogue. The same catalogue always gives the same description, key for key. */
export function describeCatalogue(catalogue: Catalogue): CatalogueDescription {
  refuseProblems('the catalogue', [
    Array.isArray(property(catalogue, 'events'))
      ? null
      : `it must come from defineEvents, but is ${shown(catalogue)}`,
  ])
  const events = catalogue.events.map(describeEvent)
  return { format: 1, events: events.toSorted((a, b) => (a.name < b.name ? -1 : 1)) }
}

/** Whether this can be a description. A snapshot is our own writing: its outline is checked, its details are trusted. */
export function isDescription(value: unknown): value is CatalogueDescription {
  if (typeof value !== 'object' || value === null) return false
  const events: unknown = Reflect.get(value, 'events')
  if (Reflect.get(value, 'format') !== 1 || !Array.isArray(events)) return false
  return events.every((event: unknown) => {
    if (typeof event !== 'object' || event === null) return false
    return typeof Reflect.get(event, 'name') === 'string' && Array.isArray(Reflect.get(event, 'sensitive'))
  })
}

/** The text of a snapshot file: commit it, and let a test hold the catalogue against it. */
export function snapshotText(catalogue: Catalogue): string {
  return `${JSON.stringify(describeCatalogue(catalogue), null, 2)}\n`
}

function describeEvent(spec: EventSpec): EventDescription {
  const jsonSchema = jsonSchemaOf(spec)
  return {
    name: spec.name,
    storedAs: spec.storedAs,
    kind: spec.kind,
    stream: spec.stream,
    aggregate: spec.aggregate,
    version: spec.version,
    oldestVersion: spec.oldestVersion,
    upcastsFrom: spec.upcast.size === 0 ? null : spec.oldestVersion,
    sequenced: spec.sequenced,
    jsonSchema: jsonSchema === null ? null : sortedObject(jsonSchema),
    sensitive: [...new Set(spec.sensitive.map((field) => field.path))].toSorted(),
  }
}

// Libraries write keys in an order of their own, which may change with a release: a snapshot must not change with it.
function sortedObject(value: object): JsonObject {
  const entries = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .map(([key, member]): [string, JsonValue] => [
      key,
      key === 'required' ? sortedList(member) : sortedJson(member),
    ])
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function sortedJson(value: unknown): JsonValue {
  if (Array.isArray(value)) return value.map(sortedJson)
  if (typeof value === 'object' && value !== null) return sortedObject(value)
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null
}

function sortedList(value: unknown): JsonValue {
  return Array.isArray(value) ? value.map(String).toSorted() : sortedJson(value)
}
