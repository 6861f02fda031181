import { refuseProblems, shown } from '../runtime/option-checks.ts'
import { compareJsonSchemas, type SchemaFindingKind } from './compare-json-schema.ts'
import { type CatalogueDescription, type EventDescription, isDescription } from './describe-catalogue.ts'
import { nodeOf } from './json-schema.ts'

/** One difference between two versions of a catalogue. */
export interface CatalogueFinding {
  /** The event's name. */
  readonly event: string
  readonly kind: CatalogueFindingKind
  /** `payload.items[*].price`, or the property of the definition. */
  readonly path: string
  readonly message: string
  /** True when stored events, or code that is still running, would be left behind. */
  readonly breaking: boolean
}

/** The ways a catalogue can change. */
export type CatalogueFindingKind =
  | SchemaFindingKind
  | 'event-added'
  | 'event-removed'
  | 'event-renamed'
  | 'stream-changed'
  | 'aggregate-changed'
  | 'stored-type-changed'
  | 'sequence-changed'
  | 'version-decreased'
  | 'oldest-version-raised'
  | 'schema-added'
  | 'schema-removed'
  | 'not-comparable'
  | 'no-longer-sensitive'

/**
 * What changed from one version of a catalogue to the next. A breaking change of a payload is accepted when the
 * event's version was raised and upcasters lead from the old version to the new one.
 */
export function compareCatalogues(
  before: CatalogueDescription,
  after: CatalogueDescription,
): readonly CatalogueFinding[] {
  refuseProblems('compareCatalogues', [
    isDescription(before) ? null : `before must come from describeCatalogue, but is ${shown(before)}`,
    isDescription(after) ? null : `after must come from describeCatalogue, but is ${shown(after)}`,
  ])
  const pairs = before.events.map((old) => [old, successorOf(old, before, after)] as const)
  const found = new Set(pairs.map(([, now]) => now))
  const added = after.events.filter((event) => !found.has(event))
  return [
    ...pairs.flatMap(([old, now]) => (now === undefined ? [removedEvent(old)] : compareEvents(old, now))),
    ...added.map(({ name }) => finding(name, 'event-added', 'name', 'was added', false)),
  ]
}

/** The event of the same name, or the one that took over its stored type under a new name. */
function successorOf(
  old: EventDescription,
  before: CatalogueDescription,
  after: CatalogueDescription,
): EventDescription | undefined {
  const sameName = after.events.find((event) => event.name === old.name)
  if (sameName !== undefined) return sameName
  return after.events.find(
    (event) => event.storedAs === old.storedAs && !before.events.some((other) => other.name === event.name),
  )
}

function removedEvent(old: EventDescription): CatalogueFinding {
  return finding(
    old.name,
    'event-removed',
    'name',
    'was removed, but events of this type may be stored',
    true,
  )
}

function compareEvents(old: EventDescription, now: EventDescription): readonly CatalogueFinding[] {
  return [
    ...compareRouting(old, now),
    ...compareVersions(old, now),
    ...comparePayloads(old, now),
    ...compareMasks(old, now),
  ]
}

function compareRouting(old: EventDescription, now: EventDescription): readonly CatalogueFinding[] {
  const changes: readonly (readonly [
    CatalogueFindingKind,
    string,
    string | boolean,
    string | boolean,
    boolean,
  ])[] = [
    ['event-renamed', 'name', old.name, now.name, false],
    ['stream-changed', 'stream', old.stream, now.stream, true],
    ['aggregate-changed', 'aggregate', old.aggregate, now.aggregate, true],
    ['stored-type-changed', 'storedAs', old.storedAs, now.storedAs, true],
    // Consumers that verify the sequence would see it end or start in the middle.
    ['sequence-changed', 'sequence', old.sequenced, now.sequenced, old.sequenced],
  ]
  return changes
    .filter(([, , was, is]) => was !== is)
    .map(([kind, path, was, is, breaking]) =>
      finding(now.name, kind, path, `was ${was}, is now ${is}`, breaking),
    )
}

function compareVersions(old: EventDescription, now: EventDescription): readonly CatalogueFinding[] {
  const findings: CatalogueFinding[] = []
  if (now.version < old.version) {
    const message = `was ${old.version}, is now ${now.version}: stored events would be newer than the code`
    findings.push(finding(now.name, 'version-decreased', 'version', message, true))
  }
  if (now.oldestVersion > old.oldestVersion) {
    const message = `was ${old.oldestVersion}, is now ${now.oldestVersion}: older stored events cannot be read any more`
    findings.push(finding(now.name, 'oldest-version-raised', 'oldestVersion', message, true))
  }
  return findings
}

function comparePayloads(old: EventDescription, now: EventDescription): readonly CatalogueFinding[] {
  if (old.jsonSchema === null && now.jsonSchema === null) {
    const message = 'has no JSON Schema, so that changes of it go unseen: give jsonSchema with the definition'
    return [finding(now.name, 'not-comparable', 'payload', message, false)]
  }
  if (old.jsonSchema === null) {
    return [finding(now.name, 'schema-added', 'payload', 'can be compared from now on', false)]
  }
  if (now.jsonSchema === null) {
    return [
      finding(now.name, 'schema-removed', 'payload', 'has no JSON Schema any more: changes go unseen', true),
    ]
  }
  const isUpcast = now.version > old.version && now.upcastsFrom !== null && now.upcastsFrom <= old.version
  return compareJsonSchemas(nodeOf(old.jsonSchema), nodeOf(now.jsonSchema)).map((found) => ({
    event: now.name,
    ...(found.breaking && isUpcast ? accepted(found, old, now) : found),
  }))
}

function accepted<Finding extends { readonly message: string }>(
  found: Finding,
  old: EventDescription,
  now: EventDescription,
): Finding & { readonly breaking: false } {
  const message = `${found.message} (accepted: version ${old.version} is upcast to ${now.version}; deploy readers first)`
  return { ...found, message, breaking: false }
}

function compareMasks(old: EventDescription, now: EventDescription): readonly CatalogueFinding[] {
  return old.sensitive
    .filter((path) => !now.sensitive.includes(path))
    .map((path) =>
      finding(now.name, 'no-longer-sensitive', path, 'is shown in logs and alerts from now on', false),
    )
}

function finding(
  event: string,
  kind: CatalogueFindingKind,
  path: string,
  message: string,
  breaking: boolean,
): CatalogueFinding {
  return { event, kind, path, message, breaking }
}
