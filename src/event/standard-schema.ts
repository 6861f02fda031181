/**
 * The part of Standard Schema v1 that is used here, by shape: zod, valibot, arktype and every other library that
 * follows https://standardschema.dev fits without an adapter and without a dependency.
 */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly '~standard': StandardSchemaProps<Input, Output>
}

/** What hangs under `~standard`. */
export interface StandardSchemaProps<Input = unknown, Output = Input> {
  readonly version: 1
  readonly vendor: string
  readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
  readonly types?: { readonly input: Input; readonly output: Output } | undefined
}

/** A value that passed, or the list of what is wrong with it. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

/** One thing wrong with a value. Some libraries put the whole input into a path segment: only `key` is ever read. */
export interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** What a schema accepts; `unknown` for anything that is no schema. */
export type SchemaInput<Schema> = Schema extends StandardSchemaV1
  ? NonNullable<Schema['~standard']['types']>['input']
  : unknown

/** What a schema makes of it; `unknown` for anything that is no schema. */
export type SchemaOutput<Schema> = Schema extends StandardSchemaV1
  ? NonNullable<Schema['~standard']['types']>['output']
  : unknown

const UNCHECKED_VENDOR = 'commitpost/unchecked'

/**
 * A payload type without a run-time check: the compiler knows it, nothing is validated. For code that trusts its
 * publishers, and for the hottest paths.
 */
export function unchecked<Payload>(): StandardSchemaV1<Payload, Payload> {
  return {
    '~standard': {
      version: 1,
      vendor: UNCHECKED_VENDOR,
      // Sound only as far as the caller's claim goes, which is what the name says.
      validate: (value) => ({ value: value as Payload }),
    },
  }
}

/** True for a schema that `unchecked` made, so that nobody pays for validating nothing. */
export function isUnchecked(schema: StandardSchemaV1): boolean {
  return schema['~standard'].vendor === UNCHECKED_VENDOR
}

/** True for anything that offers Standard Schema v1; arktype's schemas are functions. */
export function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const props: unknown = Reflect.get(value, '~standard')
  if (typeof props !== 'object' || props === null) return false
  return Reflect.get(props, 'version') === 1 && typeof Reflect.get(props, 'validate') === 'function'
}
