import { compareCatalogues } from '../../src/event/compare-catalogues.ts'
import { defineEvents } from '../../src/event/define-events.ts'
import type { EventDefinition } from '../../src/event/definition.ts'
import { type CatalogueDescription, describeCatalogue } from '../../src/event/describe-catalogue.ts'

const base = { stream: 'shop.order.event', aggregate: 'order' }

/** The description of a catalogue of these events. */
export function described(definitions: Record<string, Partial<EventDefinition>>): CatalogueDescription {
  const complete = Object.entries(definitions).map(([name, definition]) => [name, { ...base, ...definition }])
  return describeCatalogue(defineEvents(Object.fromEntries(complete) as Record<string, EventDefinition>))
}

/** `kind path`, with an exclamation mark where it breaks. Without what is said of every payload that has no JSON Schema. */
export function changes(before: CatalogueDescription, after: CatalogueDescription): readonly string[] {
  return compareCatalogues(before, after)
    .filter(({ kind }) => kind !== 'not-comparable')
    .map(({ kind, path, breaking }) => `${kind} ${path}${breaking ? ' !' : ''}`)
}
