import { borne, cli, type Group, invalid, type Refusal, refused, wrong } from '../row.ts'
import type { HostileOutbox } from '../scene.ts'

const kim = { operator: 'kim' }
const megabyte = 'x'.repeat(2 ** 20)
type Letters = HostileOutbox['deadLetters']

const letters = (does: string, says: string, run: (letters: Letters) => unknown): Refusal =>
  invalid(`deadLetters.${does}`, says, ({ outbox }) => run(outbox.deadLetters))

const AT = ['--database', 'DATABASE', '--schema', 'SCHEMA'] as const

export const careOfLetters: Group = {
  title: 'Reading and caring for dead letters',
  rows: [
    letters('list({ text: with a NUL })', 'text must not contain a NUL character', (all) =>
      all.list({ text: 'a\0' }),
    ),
    letters("list({ text: '' })", 'text must be text that is not empty', (all) => all.list({ text: '' })),
    letters('list({ limit: -1 })', 'limit must be a whole number from 1 to 1000, but is -1', (all) =>
      all.list({ limit: -1 }),
    ),
    letters("list({ reason: 'BAD_LUCK' })", "reason must be one of 'NO_HANDLER'", (all) =>
      all.list({ reason: wrong('BAD_LUCK') }),
    ),
    letters("list({ failedFrom: '2026-01-01' })", 'failedFrom must be a valid Date', (all) =>
      all.list({ failedFrom: wrong('2026-01-01') }),
    ),
    letters('list({ failedTo: an invalid Date })', 'failedTo must be a valid Date', (all) =>
      all.list({ failedTo: new Date(Number.NaN) }),
    ),
    letters('list({ failedFrom: after failedTo })', 'failedFrom must be before failedTo', (all) =>
      all.list({ failedFrom: new Date(2), failedTo: new Date(1) }),
    ),
    borne(
      "deadLetters.list({ text: '%' })",
      'finds the character, not everything',
      ['The only attempt failed with: disk is 100% full'],
      async ({ outbox }) =>
        (await outbox.deadLetters.list({ text: '%' })).map(({ errorMessage }) => errorMessage),
    ),
    letters('group({ limit: 0 })', 'limit must be a whole number from 1 to 1000', (all) =>
      all.group({ limit: 0 }),
    ),
    letters("group({ before: '1' })", 'there is no option "before"', (all) =>
      all.group(wrong({ before: '1' })),
    ),
    letters('export({ stream: with a NUL })', 'stream must not contain a NUL character', async (all) =>
      all.export({ stream: 'a\0' }),
    ),
    letters("blocked({ after: 'x' })", 'the id must be a whole number as text', (all) =>
      all.blocked({ after: 'x' }),
    ),
    letters('purge()', 'the options must be an object', (all) => all.purge(wrong(undefined), kim)),
    letters("purge({ olderThan: '-1d' }, …)", 'olderThan must be milliseconds', (all) =>
      all.purge({ olderThan: '-1d' }, kim),
    ),
    letters("purge({ olderThan: '1d' })", 'the act must be { operator, note? }', (all) =>
      all.purge({ olderThan: '1d' }, wrong(undefined)),
    ),
    letters("resolve('1', { …, note: 1 MB })", 'note must be at most 2000 characters long', (all) =>
      all.resolve('1', { ...kim, note: megabyte }),
    ),
    letters("amend('x', …)", 'the id must be a whole number as text', (all) => all.amend('x', {}, kim)),
    letters("amend('1', {}, { operator: '' })", 'operator must name who does this', (all) =>
      all.amend('1', {}, { operator: '' }),
    ),
    refused("deadLetters.amend('404', …)", 'NOT_FOUND', 'There is no dead letter "404"', ({ outbox }) =>
      outbox.deadLetters.amend('404', {}, kim),
    ),
    cli(['dlq', 'list', '--reason', 'BAD', ...AT], 2, 'USAGE', '--reason must be NO_HANDLER or'),
    cli(['dlq', 'list', '--since', 'yesterday', ...AT], 2, 'USAGE', '--since must be a time such as'),
    cli(['dlq', 'purge', '--operator', 'kim', ...AT], 2, 'USAGE', '--older-than is missing'),
    cli(['dlq', 'purge', '--older-than', '1d', ...AT], 2, 'USAGE', '--operator is missing'),
    cli(['dlq', 'amend', '404', '--operator', 'kim', ...AT], 2, 'USAGE', 'A payload is missing'),
    cli(
      ['dlq', 'amend', '404', '--payload', '{}', '--operator', 'kim', ...AT],
      1,
      'NOT_FOUND',
      'There is no dead letter "404"',
    ),
    cli(['dlq', 'export', '--out', 'none/x', ...AT], 1, 'FILE_ERROR', 'no such file or directory (ENOENT)'),
  ],
}
