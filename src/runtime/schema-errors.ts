import { CommitpostError } from './errors.ts'

/** Commitpost's tables are not where this process looks for them. Nothing was read or written. */
export class SchemaMissingError extends CommitpostError {
  readonly schema: string

  /** `schema` is its plain name, without quotes. */
  constructor(schema: string, options?: ErrorOptions) {
    super(
      'SCHEMA_MISSING',
      `There are no Commitpost tables in schema "${schema}". Create them with \`commitpost migrate up --schema ` +
        `${schema}\` or migrateUp(pool, { schema: '${schema}' }), or name the schema they are in.`,
      options,
    )
    this.schema = schema
  }
}

/** The tables are of another version than this code can work with. */
export class SchemaVersionError extends CommitpostError {
  readonly found: number
  readonly needed: number

  constructor(found: number, needed: number, options?: ErrorOptions) {
    const advice =
      found > needed
        ? 'Upgrade the commitpost package of this process.'
        : 'Run `commitpost migrate up` with a role that owns the schema.'
    super(
      'SCHEMA_VERSION',
      `The database has Commitpost schema version ${found}, and this process needs version ${needed}. ${advice}`,
      options,
    )
    this.found = found
    this.needed = needed
  }
}
