import type { OrderingKeyContext, Sink, Upcaster } from './definition.ts'
import type { EventKind } from './names.ts'
import type { StandardSchemaV1 } from './standard-schema.ts'

/** A definition with every default filled in and every rule checked: what the rest of the library works with. */
export interface EventSpec {
  /** The name in code, by which handlers are keyed. */
  readonly name: string
  /** The type in the table. */
  readonly storedAs: string
  readonly kind: EventKind
  readonly stream: string
  readonly aggregate: string
  readonly version: number
  readonly oldestVersion: number
  /** Null where nothing is validated. */
  readonly schema: StandardSchemaV1 | null
  /** As given by the user; null means: ask the schema. */
  readonly jsonSchema: object | null
  /** From each version to the next; empty, or complete from `oldestVersion` on. */
  readonly upcast: ReadonlyMap<number, Upcaster>
  readonly sensitive: readonly SensitiveField[]
  readonly orderingKey: ((payload: unknown, context: OrderingKeyContext) => unknown) | null
  readonly sequenced: boolean
}

/** One field to hide. */
export interface SensitiveField {
  readonly path: string
  /** Null means from everybody. */
  readonly from: readonly Sink[] | null
}

/** The paths to hide from one sink. */
export function sensitivePaths(spec: EventSpec, sink: Sink): readonly string[] {
  return spec.sensitive
    .filter((field) => field.from === null || field.from.includes(sink))
    .map((field) => field.path)
}

// zod throws for a Date by default; "any" lets the other fields of such a payload still be compared.
const JSON_SCHEMA_OPTIONS = { target: 'draft-2020-12', libraryOptions: { unrepresentable: 'any' } }

/** The JSON Schema of the stored form, or null when nobody can tell it. */
export function jsonSchemaOf(spec: Pick<EventSpec, 'schema' | 'jsonSchema'>): object | null {
  if (spec.jsonSchema !== null) return spec.jsonSchema
  return spec.schema === null ? null : askSchema(spec.schema)
}

function askSchema(schema: StandardSchemaV1): object | null {
  const converter: unknown = Reflect.get(schema['~standard'], 'jsonSchema')
  if (typeof converter !== 'object' || converter === null) return null
  const input: unknown = Reflect.get(converter, 'input')
  if (typeof input !== 'function') return null
  try {
    const written: unknown = Reflect.apply(input, converter, [JSON_SCHEMA_OPTIONS])
    return typeof written === 'object' ? written : null
  } catch {
    // The standard allows it to throw for what JSON Schema cannot say.
    return null
  }
}
