import { meant, shown } from '../runtime/option-checks.ts'
import {
  type EventDefinition,
  type OrderingKeyContext,
  type SensitivePath,
  SINKS,
  type Upcaster,
} from './definition.ts'
import { type EventSpec, jsonSchemaOf, type SensitiveField } from './event-spec.ts'
import { type NameRule, nameProblem, storedNameProblem } from './names.ts'
import { schemaHasPath } from './schema-path.ts'
import { isStandardSchema, isUnchecked, type StandardSchemaV1 } from './standard-schema.ts'

/** One definition, resolved as far as it could be, and everything wrong with it. */
export interface ResolvedDefinition {
  readonly spec: EventSpec
  readonly problems: readonly string[]
}

// Kafka's rule for topics, so that a stream can become one unchanged; aggregate types become topics by Debezium's router.
const TOPIC_NAME = /^[A-Za-z0-9._-]{1,249}$/
const SINK_NAMES: ReadonlySet<string> = new Set(SINKS)
const LARGEST_VERSION = 2 ** 31 - 1

// A misspelt `sensitive` would publish what it should hide: unknown properties are refused, not ignored.
const KNOWN_PROPERTIES: ReadonlySet<string> = new Set<keyof EventDefinition>([
  'stream',
  'aggregate',
  'kind',
  'version',
  'oldestVersion',
  'schema',
  'jsonSchema',
  'upcast',
  'sensitive',
  'orderingKey',
  'sequence',
  'storedAs',
])

/** Fills in the defaults of one definition and lists all that is wrong with it. Never throws for what a user wrote. */
export function resolveDefinition(
  name: string,
  definition: EventDefinition,
  rule: NameRule,
): ResolvedDefinition {
  if (typeof definition !== 'object' || definition === null) {
    return { spec: specOf(name, { stream: '', aggregate: '' }), problems: ['must be an object'] }
  }
  const spec = specOf(name, definition)
  const problems = [
    ...unknownProperties(definition),
    ...namingProblems(spec, rule),
    ...versionProblems(spec, definition),
    ...shapeProblems(definition),
    ...sensitiveProblems(spec),
  ]
  return { spec, problems }
}

function specOf(name: string, definition: EventDefinition): EventSpec {
  const schema: StandardSchemaV1 | undefined = definition.schema
  return {
    name,
    storedAs: definition.storedAs ?? name,
    kind: definition.kind ?? 'event',
    stream: definition.stream,
    aggregate: definition.aggregate,
    version: definition.version ?? 1,
    oldestVersion: definition.oldestVersion ?? 1,
    schema: isStandardSchema(schema) && !isUnchecked(schema) ? schema : null,
    jsonSchema: definition.jsonSchema ?? null,
    upcast: upcastersOf(definition),
    sensitive: isList(definition.sensitive) ? definition.sensitive.map(sensitiveField) : [],
    orderingKey: orderingKeyOf(definition),
    sequenced: definition.sequence ?? false,
  }
}

function upcastersOf(definition: EventDefinition): ReadonlyMap<number, Upcaster> {
  const entries = Object.entries(definition.upcast ?? {})
  return new Map(entries.map(([version, upcaster]) => [Number(version), upcaster]))
}

function orderingKeyOf(definition: EventDefinition): EventSpec['orderingKey'] {
  const own = definition.orderingKey
  return own === undefined ? null : (payload: unknown, context: OrderingKeyContext) => own(payload, context)
}

function sensitiveField(sensitive: SensitivePath): SensitiveField {
  return typeof sensitive === 'string' ? { path: sensitive, from: null } : { ...sensitive }
}

function unknownProperties(definition: EventDefinition): readonly string[] {
  return Object.keys(definition)
    .filter((key) => !KNOWN_PROPERTIES.has(key))
    .map((key) => `has an unknown property ${shown(key)}${meant(key, [...KNOWN_PROPERTIES])}`)
}

function namingProblems(spec: EventSpec, rule: NameRule): readonly string[] {
  const problems: (string | null)[] = [
    prefixed('name', nameProblem(spec.name, spec.kind, rule)),
    prefixed('stream', topicProblem(spec.stream)),
    prefixed('aggregate', topicProblem(spec.aggregate)),
  ]
  if (spec.storedAs !== spec.name) problems.push(prefixed('storedAs', storedTypeProblem(spec.storedAs)))
  return problems.filter((problem) => problem !== null)
}

function prefixed(property: string, problem: string | null): string | null {
  return problem === null ? null : `${property} ${problem}`
}

function topicProblem(text: unknown): string | null {
  if (typeof text === 'string' && TOPIC_NAME.test(text) && text !== '.' && text !== '..') return null
  return 'must be 1 to 249 letters, digits, dots, dashes or underscores (the rule for Kafka topics)'
}

function storedTypeProblem(text: unknown): string | null {
  return typeof text === 'string' ? storedNameProblem(text) : 'must be a string'
}

function versionProblems(spec: EventSpec, definition: EventDefinition): readonly string[] {
  const problems: string[] = []
  if (!isVersion(spec.version)) problems.push('version must be a whole number from 1 on')
  if (!isVersion(spec.oldestVersion)) problems.push('oldestVersion must be a whole number from 1 on')
  if (problems.length > 0) return problems
  if (spec.oldestVersion > spec.version) return ['oldestVersion must not be above version']
  return definition.upcast === undefined ? [] : upcastProblems(spec)
}

function isVersion(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= LARGEST_VERSION
}

function upcastProblems(spec: EventSpec): readonly string[] {
  const problems: string[] = []
  for (const [version, upcaster] of spec.upcast) {
    const isStep = Number.isInteger(version) && version >= spec.oldestVersion && version < spec.version
    if (!isStep) problems.push(`upcast[${version}] leads nowhere: steps start at ${stepsText(spec)}`)
    if (typeof upcaster !== 'function') problems.push(`upcast[${version}] must be a function`)
  }
  const firstMissing = missingSteps(spec)
  if (firstMissing.length > 0) {
    problems.push(`upcast lacks the step from version ${firstMissing.join(', ')} (or raise oldestVersion)`)
  }
  return problems
}

function stepsText(spec: EventSpec): string {
  const last = spec.version - 1
  if (last < spec.oldestVersion) return 'no version, as there is only one'
  return last === spec.oldestVersion ? `version ${last}` : `versions ${spec.oldestVersion} to ${last}`
}

function missingSteps(spec: EventSpec): readonly number[] {
  const missing: number[] = []
  // Ten examples are enough, and a version of a billion must not take a minute to refuse.
  for (let version = spec.oldestVersion; version < spec.version && missing.length < 10; version += 1) {
    if (!spec.upcast.has(version)) missing.push(version)
  }
  return missing
}

function shapeProblems(definition: EventDefinition): readonly string[] {
  const { kind, schema, jsonSchema, upcast, sensitive, orderingKey, sequence } = definition
  const checks: readonly (readonly [boolean, string])[] = [
    [kind === undefined || kind === 'event' || kind === 'command', "kind must be 'event' or 'command'"],
    [
      schema === undefined || isStandardSchema(schema),
      'schema must be a Standard Schema (zod, valibot, arktype …)',
    ],
    [jsonSchema === undefined || isRecord(jsonSchema), 'jsonSchema must be an object'],
    [upcast === undefined || isRecord(upcast), 'upcast must be an object of functions by version'],
    [sensitive === undefined || isList(sensitive), 'sensitive must be a list of paths'],
    [orderingKey === undefined || typeof orderingKey === 'function', 'orderingKey must be a function'],
    [sequence === undefined || typeof sequence === 'boolean', 'sequence must be true or false'],
  ]
  return checks.filter(([holds]) => !holds).map(([, problem]) => problem)
}

function isRecord(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isList(value: unknown): value is readonly SensitivePath[] {
  return Array.isArray(value)
}

function sensitiveProblems(spec: EventSpec): readonly string[] {
  // Paths of older versions may be listed too, which today's schema need not know.
  const jsonSchema =
    spec.version === spec.oldestVersion && spec.sensitive.length > 0 ? jsonSchemaOf(spec) : null
  return spec.sensitive.flatMap((field) => {
    const problem = sensitiveProblem(field, jsonSchema)
    return problem === null ? [] : [problem]
  })
}

function sensitiveProblem({ path, from }: SensitiveField, jsonSchema: object | null): string | null {
  if (typeof path !== 'string' || path.split('.').includes('')) {
    return `sensitive path ${JSON.stringify(path)} must be keys joined by dots, as in "card.number"`
  }
  if (
    from !== null &&
    (!Array.isArray(from) || from.length === 0 || !from.every((sink) => SINK_NAMES.has(sink)))
  ) {
    return `sensitive path "${path}" must be hidden from some of ${SINKS.join(', ')}`
  }
  if (jsonSchema !== null && !schemaHasPath(jsonSchema, path.split('.'))) {
    return `sensitive path "${path}" is not in the schema: a misspelt path would hide nothing`
  }
  return null
}
