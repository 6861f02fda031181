import pg from 'pg'
import { createOutbox } from '../../../src/index.ts'
import {
  migrateUp,
  migrationSql,
  migrationStatus,
  partitionSql,
  partitionTables,
  postgresStore,
  rolesSql,
} from '../../../src/store/postgres/index.ts'
import { borne, type Group, invalid, type Refusal, type Row, refused, sqlRefused, wrong } from '../row.ts'
import { events } from '../scene.ts'

const schemaOf = (does: string, says: string, schema: unknown): Refusal =>
  invalid(`postgresStore({ pool, schema: ${does} })`, says, ({ pool }) =>
    postgresStore({ pool, schema: wrong(schema) }),
  )

export const identifiers: Group = {
  title: 'SQL identifiers and migrations',
  rows: [
    invalid('postgresStore(pool)', 'postgresStore({ pool })', ({ pool }) => postgresStore(wrong(pool))),
    invalid('postgresStore()', 'the argument must be an object, but is undefined', () =>
      postgresStore(wrong(undefined)),
    ),
    invalid('postgresStore({})', 'pool must be a pool of clients, such as new pg.Pool()', () =>
      postgresStore(wrong({})),
    ),
    invalid(
      'postgresStore({ pool: a client })',
      'pool must be a pool of clients, such as new pg.Pool()',
      () => postgresStore({ pool: wrong(new pg.Client()) }),
    ),
    invalid("postgresStore({ pool, shema: 'x' })", 'did you mean "schema"?', ({ pool }) =>
      postgresStore(wrong({ pool, shema: 'x' })),
    ),
    schemaOf('5', 'a name must be text, but is 5', 5),
    schemaOf("''", 'a name must not be empty', ''),
    schemaOf('with a NUL', 'a name must not contain a NUL character', 'a\0'),
    schemaOf('half a character', 'a name must be valid Unicode', '\ud800'),
    schemaOf('64 bytes', 'a name must be at most 63 bytes', 'x'.repeat(64)),
    schemaOf('22 Korean letters, 66 bytes', 'a name must be at most 63 bytes', '가'.repeat(22)),
    schemaOf("'$commitpost$'", 'a name must not contain $commitpost$', '$commitpost$'),
    invalid('migrateUp()', 'the first argument must be a pool, such as new pg.Pool()', () =>
      migrateUp(wrong(undefined)),
    ),
    invalid('migrateUp(a client)', 'the first argument must be a pool, such as new pg.Pool()', () =>
      migrateUp(wrong(new pg.Client())),
    ),
    invalid("migrateUp(pool, { shema: 'x' })", 'did you mean "schema"?', ({ pool }) =>
      migrateUp(pool, wrong({ shema: 'x' })),
    ),
    invalid("migrateUp(pool, { schema: '' })", 'a name must not be empty', ({ pool }) =>
      migrateUp(pool, { schema: '' }),
    ),
    invalid(
      "migrateUp(pool, { createSchema: 'no' })",
      'createSchema must be true or false, but is "no"',
      ({ pool }) => migrateUp(pool, { createSchema: wrong('no') }),
    ),
    refused(
      'migrateUp without the schema, createSchema: false',
      'SCHEMA_MISSING',
      'Create it first',
      ({ pool, schema }) => migrateUp(pool, { schema: `${schema}_none`, createSchema: false }),
    ),
    invalid('migrationStatus()', 'the first argument must be a pool', () =>
      migrationStatus(wrong(undefined)),
    ),
    invalid('migrationSql()', 'the argument must be an object, but is undefined', () =>
      migrationSql(wrong(undefined)),
    ),
    invalid("migrationSql({ schema: 'x', from: -1 })", 'from must be a whole number from 0', () =>
      migrationSql({ schema: 'x', from: -1 }),
    ),
    invalid("migrationSql({ schema: 'x', from: 999 })", 'from must be a whole number from 0 to ', () =>
      migrationSql({ schema: 'x', from: 999 }),
    ),
    invalid('partitionTables()', 'the first argument must be a pool, such as new pg.Pool()', () =>
      partitionTables(wrong(undefined)),
    ),
    invalid("partitionTables(pool, { every: '1d' })", 'did you mean "everyDays"?', ({ pool }) =>
      partitionTables(pool, wrong({ every: '1d' })),
    ),
    invalid(
      'partitionTables(pool, { everyDays: 91 })',
      'everyDays must be a whole number from 1 to 90',
      ({ pool }) => partitionTables(pool, { everyDays: 91 }),
    ),
    refused(
      'partitionTables on a schema that nobody migrated',
      'SCHEMA_MISSING',
      'commitpost migrate up',
      ({ pool, schema }) => partitionTables(pool, { schema: `${schema}_none` }),
    ),
    invalid("partitionSql({ schema: 'x', everyDays: 0 })", 'everyDays must be a whole number from 1', () =>
      partitionSql({ schema: 'x', everyDays: 0 }),
    ),
    invalid('rolesSql()', 'the argument must be an object, but is undefined', () =>
      rolesSql(wrong(undefined)),
    ),
    invalid("rolesSql({ schema: 'x', prefix: '' })", 'prefix must be text that is not empty', () =>
      rolesSql({ schema: 'x', prefix: '' }),
    ),
    invalid('rolesSql({ …, prefix: 60 characters })', 'a name must be at most 63 bytes', () =>
      rolesSql({ schema: 'x', prefix: 'p'.repeat(60) }),
    ),
    borne(
      `schema: x"; drop table orders; --'`,
      'a schema of that odd name is made and used',
      '1',
      async ({ pool, schema }) => {
        const odd = `${schema}"; drop table orders; --'`
        await migrateUp(pool, { schema: odd })
        const outbox = createOutbox({ store: postgresStore({ pool, schema: odd }), events })
        await outbox.inTransaction(pool, (tx) =>
          outbox.publish(tx, 'OrderPlaced', { aggregateId: 1, payload: {} }),
        )
        const quoted = `"${odd.replaceAll('"', '""')}"`
        const { rows } = await pool.query(`select count(*) from ${quoted}.outbox_event`)
        await pool.query(`drop schema ${quoted} cascade`)
        return rows[0].count
      },
    ),
  ],
}

const insert = (columns: string, values: string): string =>
  `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload${columns}) values ${values}`

const row = (...values: readonly string[]): string => `(${values.join(', ')})`

const flawed = (column: string, columns: string, ...values: readonly string[]): Row =>
  sqlRefused(insert(columns, row(...values)), '23514', `an event cannot have this ${column}`)

export const inserts: Group = {
  title: 'Plain SQL',
  rows: [
    flawed('stream', '', "''", "'T'", "'a'", "'1'", "'{}'"),
    flawed('event_type', '', "'s'", "''", "'a'", "'1'", "'{}'"),
    flawed('stream', '', "repeat('s', 1001)", "'T'", "'a'", "'1'", "'{}'"),
    flawed('aggregate_id', '', "'s'", "'T'", "'a'", "''", "'{}'"),
    flawed('aggregate_id', '', "'s'", "'T'", "'a'", "repeat('1', 1021)", "'{}'"),
    flawed('aggregate_type', '', "'s'", "'T'", "''", "'1'", "'{}'"),
    sqlRefused(
      insert('', row("'s'", "'T'", "'a'", "'1'", 'null')),
      '23502',
      'null value in column "payload"',
    ),
    sqlRefused(
      insert('', row("'s'", "'T'", "'a'", "'1'", "'{'")),
      '22P02',
      'invalid input syntax for type json',
    ),
    sqlRefused(
      insert('', row("'s'", "'T'", "'a'", "'1'", `'"\\u0000"'`)),
      '22P05',
      'unsupported Unicode escape sequence',
    ),
    sqlRefused(
      insert('', row("'s'", "'T'", "'a'", "'1'", `'"\\ud83d"'`)),
      '22P02',
      'invalid input syntax for type json',
    ),
    flawed('stream', '', "'s' || chr(31)", "'T'", "'a'", "'1'", "'{}'"),
    flawed('ordering_key', ', ordering_key', "'s'", "'T'", "'a'", "'1'", "'{}'", "'k' || chr(31)"),
    flawed('headers', ', headers', "'s'", "'T'", "'a'", "'1'", "'{}'", "'[]'"),
    flawed('schema_version', ', schema_version', "'s'", "'T'", "'a'", "'1'", "'{}'", '0'),
    flawed('ordering_key', ', ordering_key', "'s'", "'T'", "'a'", "'1'", "'{}'", "repeat('k', 2031)"),
    sqlRefused(
      insert(', event_id', row("'s'", "'T'", "'a'", "'1'", "'{}'", "'x'")),
      '22P02',
      'invalid input syntax for type uuid',
    ),
    sqlRefused(
      insert(', id', row("'s'", "'T'", "'a'", "'1'", "'{}'", '1')),
      '428C9',
      'cannot insert a non-DEFAULT value into column "id"',
    ),
    sqlRefused(
      `update outbox_event set payload = '{}'`,
      '55000',
      'what was written is immutable: UPDATE on outbox_event is refused',
    ),
    sqlRefused('delete from outbox_event', '55000', 'DELETE on outbox_event is refused'),
    sqlRefused('truncate outbox_event', '55000', 'TRUNCATE on outbox_event is refused'),
    sqlRefused('truncate outbox_delivery', '55000', 'a delivery that is not DONE cannot be removed'),
    sqlRefused('delete from outbox_operator_log', '55000', 'DELETE on outbox_operator_log is refused'),
    sqlRefused("select outbox_retry(404, 'kim')", 'P0002', 'dead letter 404 does not exist'),
    sqlRefused("select outbox_retry(404, ' ')", '22023', "an operator's name is needed"),
    sqlRefused('select outbox_resolve(404, null)', '22023', "an operator's name is needed"),
  ],
}
