import { InvalidOptionsError } from '../runtime/errors.ts'
import { recordProblem, refuseProblems, shown, unknownOptionProblems } from '../runtime/option-checks.ts'
import { suggest } from '../runtime/suggest.ts'
import type { Catalogue, EventTypes } from './catalogue.ts'
import type { CatalogueOptions, EventDefinition, Refusal } from './definition.ts'
import type { EventProblem } from './errors.ts'
import type { EventSpec } from './event-spec.ts'
import type { NameRule } from './names.ts'
import { patternMatcher } from './pattern.ts'
import { prepareEvent } from './prepare-event.ts'
import { readEvent } from './read-event.ts'
import { resolveDefinition } from './resolve-definition.ts'
import type { SchemaInput, SchemaOutput } from './standard-schema.ts'

/** The payload types of a map of schemas. */
export type TypesOfSchemas<Schemas> = {
  readonly [Name in keyof Schemas]: {
    readonly input: SchemaInput<Schemas[Name]>
    readonly output: SchemaOutput<Schemas[Name]>
  }
}

/**
 * Makes a catalogue: every event with its stream, aggregate and payload. Definitions of several modules are put
 * together by spreading: `defineEvents({ ...billingEvents, ...guildEvents })`.
 *
 * @throws InvalidOptionsError naming every problem of every definition at once.
 */
export function defineEvents<Schemas extends Record<string, unknown>>(
  definitions: { readonly [Name in keyof Schemas]: EventDefinition<Schemas[Name]> },
  options: CatalogueOptions = {},
): Catalogue<TypesOfSchemas<Schemas>> {
  refuseProblems('the event catalogue', [
    recordProblem('the definitions', definitions),
    recordProblem('the options', options),
  ])
  const { names, refusals, problems } = resolveOptions(options)
  const specs: EventSpec[] = []
  for (const [name, definition] of Object.entries<EventDefinition>(definitions)) {
    const resolved = resolveDefinition(name, definition, names)
    specs.push(resolved.spec)
    problems.push(...resolved.problems.map((problem) => `${name}: ${problem}`))
    problems.push(...refusalsOf(resolved.spec, refusals).map((reason) => `${name}: is refused: ${reason}`))
  }
  problems.push(...sharedTypes(specs))
  if (problems.length > 0) throw new InvalidOptionsError('the event catalogue', problems)
  return createCatalogue(specs, refusals)
}

/** A refusal with its pattern made ready. */
interface CheckedRefusal {
  readonly of: 'stream' | 'type'
  readonly matches: (name: string) => boolean
  readonly reason: string
}

interface ResolvedOptions {
  readonly names: NameRule
  readonly refusals: readonly CheckedRefusal[]
  readonly problems: string[]
}

const RULES: ReadonlySet<unknown> = new Set(['past-tense', 'upper-snake', 'any'])

function resolveOptions(options: CatalogueOptions): ResolvedOptions {
  const problems = unknownOptionProblems(options, ['names', 'refuse'])
  const names = options.names ?? 'past-tense'
  const isRule = RULES.has(names) || names instanceof RegExp || typeof names === 'function'
  if (!isRule) problems.push("names must be 'past-tense', 'upper-snake', 'any', a RegExp or a function")
  const given: readonly Refusal[] = Array.isArray(options.refuse) ? options.refuse : []
  const refusals = given.flatMap((refusal) => checkedRefusal(refusal) ?? [])
  if (refusals.length < given.length || (options.refuse !== undefined && options.refuse !== given)) {
    problems.push('refuse must list objects of a stream or type pattern and a reason, all texts')
  }
  return { names: isRule ? names : 'any', refusals, problems }
}

function checkedRefusal(refusal: Refusal): CheckedRefusal | null {
  if (typeof refusal !== 'object' || refusal === null) return null
  const of = 'stream' in refusal ? 'stream' : 'type'
  const pattern: unknown = 'stream' in refusal ? refusal.stream : refusal.type
  if (typeof pattern !== 'string' || pattern === '' || typeof refusal.reason !== 'string') return null
  return { of, matches: patternMatcher(pattern), reason: refusal.reason }
}

function refusalsOf(spec: EventSpec, refusals: readonly CheckedRefusal[]): readonly string[] {
  return refusals
    .filter(({ of, matches }) =>
      of === 'stream' ? matches(spec.stream) : matches(spec.name) || matches(spec.storedAs),
    )
    .map(({ reason }) => reason)
}

// Names and stored types share one space, so that a text means one event, whether it comes from code or from the table.
function sharedTypes(specs: readonly EventSpec[]): readonly string[] {
  const firstBy = new Map<string, string>()
  return specs.flatMap(({ name, storedAs }) => {
    const taken = [...new Set([name, storedAs])].filter((text) => firstBy.has(text))
    for (const text of [name, storedAs]) firstBy.set(text, firstBy.get(text) ?? name)
    return taken.map((text) => `${name}: is called or stored as "${text}", and so is ${firstBy.get(text)}`)
  })
}

function createCatalogue<Types extends EventTypes>(
  specs: readonly EventSpec[],
  refusals: readonly CheckedRefusal[],
): Catalogue<Types> {
  const byName = new Map(specs.map((spec) => [spec.name, spec]))
  const byStoredType = new Map(specs.map((spec) => [spec.storedAs, spec]))
  return {
    events: specs,
    find: (name) => byName.get(name),
    findStored: (storedType) => byStoredType.get(storedType),
    prepare: (name, input, limits) => {
      const spec = byName.get(name)
      if (spec === undefined) return { ok: false, problems: [unknownEvent(name, byStoredType, refusals)] }
      return prepareEvent(spec, input, limits)
    },
    read: (event) => {
      const spec = byStoredType.get(event.type)
      return spec === undefined ? undefined : readEvent(spec, event)
    },
  }
}

function unknownEvent(
  name: string,
  byStoredType: ReadonlyMap<string, EventSpec>,
  refusals: readonly CheckedRefusal[],
): EventProblem {
  const refusal = refusals.find(({ of, matches }) => of === 'type' && matches(name))
  if (refusal !== undefined) {
    return {
      code: 'EVENT_REFUSED',
      path: 'type',
      message: `"${name}" is refused by the catalogue: ${refusal.reason}`,
    }
  }
  const stored = byStoredType.get(name)
  const near = suggest(
    name,
    [...byStoredType.values()].map((spec) => spec.name),
  )
  const advice = near === null ? 'define it with defineEvents' : `did you mean "${near}"?`
  const hint = stored === undefined ? advice : `in code it is called "${stored.name}"`
  return {
    code: 'UNKNOWN_EVENT_TYPE',
    path: 'type',
    message: `${shown(name)} is not in the catalogue: ${hint}`,
  }
}
