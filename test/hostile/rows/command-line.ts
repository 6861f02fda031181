import { cli, type Group } from '../row.ts'

const NO_SERVER = 'postgres://app:s3cret@127.0.0.1:1/x'

/** `DATABASE` and `SCHEMA` stand for those of the test. */
const AT = ['--database', 'DATABASE', '--schema', 'SCHEMA'] as const

export const commandLine: Group = {
  title: 'Command line',
  rows: [
    cli(['statsu'], 2, 'USAGE', 'There is no command "statsu". Did you mean "commitpost status"?'),
    cli(['dlq'], 2, 'USAGE', '"commitpost dlq" needs a command'),
    cli(['dlq', 'delete', '1'], 2, 'USAGE', 'There is no command "dlq delete"'),
    cli(['--databse', 'x', 'status'], 2, 'USAGE', 'There is no option --databse. Did you mean --database?'),
    cli(['status', '--database'], 2, 'USAGE', '--database needs a value'),
    cli(['dlq', 'list', '--all=yes', ...AT], 2, 'USAGE', '--all takes no value'),
    cli(['status'], 2, 'USAGE', 'No database is named'),
    cli(['status', 'now', '--database', NO_SERVER], 2, 'USAGE', '"now" is one argument too many'),
    cli(['status', '--lang', 'xx', '--database', NO_SERVER], 2, 'USAGE', '--lang must be en or ko, not "xx"'),
    cli(['status', '--database', 'mysql://app:s3cret@db/x'], 2, 'USAGE', 'is not a URL such as postgres://'),
    cli(
      ['status', '--database', NO_SERVER],
      1,
      'DATABASE_UNREACHABLE',
      'cannot be reached: connect ECONNREFUSED',
    ),
    cli(
      ['status', '--database', 'DATABASE', '--schema', 'SCHEMA_none'],
      1,
      'SCHEMA_MISSING',
      'There are no Commitpost tables in schema',
    ),
    cli(
      ['status', '--database', 'DATABASE', '--schema', 'x'.repeat(64)],
      1,
      'INVALID_OPTIONS',
      'a name must be at most 63 bytes',
    ),
    cli(['dlq', 'show', ...AT], 2, 'USAGE', '<id> is missing'),
    cli(['dlq', 'show', 'abc', ...AT], 2, 'USAGE', '<id> must be a number as the list shows it, not "abc"'),
    cli(
      ['dlq', 'show', '9223372036854775808', ...AT],
      1,
      'INVALID_OPTIONS',
      'id must be a positive whole number',
    ),
    cli(['dlq', 'show', '404', ...AT], 1, 'NOT_FOUND', 'There is no dead letter "404"'),
    cli(['dlq', 'retry', '404', ...AT], 2, 'USAGE', '--operator is missing'),
    cli(['dlq', 'retry', '404', '--operator', ' ', ...AT], 2, 'USAGE', '--operator is missing'),
    cli(['dlq', 'retry', '404', '--operator', 'kim', ...AT], 1, 'NOT_FOUND', 'There is no dead letter "404"'),
    cli(['dlq', 'resolve', '404', '--operator', 'kim', ...AT], 2, 'USAGE', '--note is missing'),
    cli(
      ['dlq', 'list', '--limit', '501', ...AT],
      2,
      'USAGE',
      '--limit must be a whole number from 1 to 500, not "501"',
    ),
    cli(
      ['dlq', 'list', '--before', '-1', ...AT],
      2,
      'USAGE',
      '--before must be a number as the list shows it',
    ),
    cli(['pause', 'nobody', '--operator', 'kim', ...AT], 1, 'NOT_FOUND', 'There is no subscription "nobody"'),
    cli(['worker'], 1, 'CONFIG_INVALID', 'none of commitpost.config.js, commitpost.config.mjs'),
    cli(['worker', '--config', 'none.mjs'], 1, 'CONFIG_INVALID', 'There is no config file at none.mjs'),
    cli(
      ['worker', '--config', 'empty.mjs'],
      1,
      'CONFIG_INVALID',
      'its default export must be { outbox, subscriptions, options? }',
    ),
    cli(['worker', '--config', 'broken.mjs'], 1, 'CONFIG_INVALID', 'cannot be loaded: SyntaxError'),
    cli(['worker', '--config', 'throws.mjs'], 1, 'CONFIG_INVALID', 'cannot be loaded: null was thrown'),
    cli(['worker', '--config', 'typed.ts'], 1, 'CONFIG_INVALID', 'is TypeScript, which Node v'),
    cli(['migrate', 'sql', '--from', '-1'], 2, 'USAGE', '--from must be a whole number'),
    cli(
      ['roles', 'sql', '--prefix', 'p'.repeat(60)],
      1,
      'INVALID_OPTIONS',
      'a name must be at most 63 bytes',
    ),
    cli(
      ['debezium', 'config', '--database', 'oracle://app:s3cret@db/x'],
      2,
      'USAGE',
      'The database must be given as postgres://user@host:port/name',
    ),
    cli(
      ['debezium', 'config', '--database', NO_SERVER, '--name', 'a b'],
      2,
      'USAGE',
      '--name must be letters, digits, ".", "_" and "-", at most 63 of them',
    ),
    cli(
      ['debezium', 'config', '--database', NO_SERVER, '--topic-prefix', 't'.repeat(121)],
      2,
      'USAGE',
      '--topic-prefix must be letters, digits, ".", "_" and "-", at most 120 of them',
    ),
    cli(
      ['debezium', 'config', '--database', NO_SERVER, '--key', 'event-id'],
      2,
      'USAGE',
      '--key must be aggregate-id or ordering-key',
    ),
    cli(
      ['debezium', 'config', '--database', NO_SERVER, '--server-id', '0'],
      2,
      'USAGE',
      '--server-id must be a whole number',
    ),
    cli(['demo', '--for', 'ever'], 2, 'USAGE', '--for must be a length of time'),
  ],
}
