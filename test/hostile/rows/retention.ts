import { createOutbox } from '../../../src/index.ts'
import { cli, type Group, invalid, type Refusal, refused, sqlRefused, wrong } from '../row.ts'
import { events, type Scene } from '../scene.ts'

const outboxWith = (does: string, says: string, retention: unknown): Refusal =>
  invalid(`createOutbox({ …, retention: ${does} })`, says, ({ store }) =>
    createOutbox(wrong({ store, events, retention })),
  )

const good = { name: 'week', stream: 'shop.*', keepDays: 7, action: 'delete' } as const

/** Good options with a policy that is not. */
const policy = (does: string, says: string, given: object): Refusal =>
  outboxWith(`{ policies: [{ …, ${does} }] }`, says, { policies: [{ ...good, ...given }] })

const archiving = (does: string, says: string, archive: unknown): Refusal =>
  policy(`action: 'archive', archive: ${does}`, says, { action: 'archive', archive })

const retention = ({ store }: Scene) =>
  createOutbox({ store, events, retention: { policies: [good] } }).retention

const run = (does: string, says: string, act: unknown): Refusal =>
  invalid(`retention.run(${does})`, says, (scene) => retention(scene).run(wrong(act)))

export const retentions: Group = {
  title: 'Retention and archive',
  rows: [
    outboxWith('true', 'retention must be an object, but is true', true),
    outboxWith('{}', 'retention.policies must be a list of at least one policy, but is undefined', {}),
    outboxWith('{ policies: [] }', 'retention.policies must be a list of at least one policy', {
      policies: [],
    }),
    outboxWith('{ policies: [null] }', 'retention.policies[0] must be an object, but is null', {
      policies: [null],
    }),
    outboxWith('{ …, hours: 3 }', 'did you mean "hour"?', { policies: [good], hours: 3 }),
    outboxWith('{ …, hour: 24 }', 'retention.hour must be a whole number from 0 to 23, but is 24', {
      policies: [good],
      hour: 24,
    }),
    outboxWith('{ …, batchSize: 0 }', 'retention.batchSize must be a whole number from 1 to 10000', {
      policies: [good],
      batchSize: 0,
    }),
    outboxWith('{ …, pauseMs: -1 }', 'retention.pauseMs must be a whole number from 0', {
      policies: [good],
      pauseMs: -1,
    }),
    outboxWith('{ …, share: 0 }', 'retention.share must be a number above 0, up to 1, but is 0', {
      policies: [good],
      share: 0,
    }),
    outboxWith('two policies of one name', 'retention.policies[1].name is that of another policy', {
      policies: [good, { ...good, stream: 'other' }],
    }),
    policy("name: ''", 'policies[0].name must be 1 to 100 letters', { name: '' }),
    policy("name: 'a b'", 'policies[0].name must be 1 to 100 letters', { name: 'a b' }),
    policy("stream: ''", 'policies[0].stream must be a stream name or pattern, but is ""', { stream: '' }),
    policy('stream: with a NUL', 'policies[0].stream must be a stream name or pattern', { stream: 'a\0' }),
    policy('keepDays: -1', 'policies[0].keepDays must be a whole number from 0 to 36525, but is -1', {
      keepDays: -1,
    }),
    policy('no keepDays', 'policies[0].keepDays must be a whole number', { keepDays: undefined }),
    policy("keepDays: '7'", 'policies[0].keepDays must be a whole number', { keepDays: '7' }),
    policy("action: 'drop'", "policies[0].action must be one of 'delete', 'archive', but is \"drop\"", {
      action: 'drop',
    }),
    policy('keepdays: 7', 'did you mean "keepDays"?', { keepdays: 7 }),
    policy('mask: true', 'policies[0].mask is for archives: nothing is kept here', { mask: true }),
    policy('archive, and action: delete', 'policies[0].archive is for policies that archive', {
      archive: { schema: 'audit', table: 'events' },
    }),
    archiving(
      "'audit.events'",
      'policies[0].archive must be { schema, table }, but is "audit.events"',
      'audit.events',
    ),
    archiving('none', 'policies[0].archive must be { schema, table }, but is undefined', undefined),
    archiving("{ table: 'events' }", 'policies[0].archive.schema must be text that is not empty', {
      table: 'events',
    }),
    archiving('a name of 64 bytes', 'policies[0].archive.table must be at most 63', {
      schema: 'audit',
      table: 'x'.repeat(64),
    }),
    archiving('a name with a NUL', 'policies[0].archive.table contains a NUL character', {
      schema: 'audit',
      table: 'a\0b',
    }),
    run('', 'the act must be { operator, note? }, but is undefined', undefined),
    run('{}', 'operator must name who does this', {}),
    run("{ operator: 'policy:week' }", 'operator must be the name of a person', { operator: 'policy:week' }),
    run('a note of 1 MB', 'note must be at most 2000 characters long', {
      operator: 'kim',
      note: 'x'.repeat(1_048_576),
    }),
    run("{ dryRun: 'yes' }", 'dryRun must be true or false', { operator: 'kim', dryRun: 'yes' }),
    run('{ onWait: 5 }', 'onWait must be a function, but is 5', { operator: 'kim', onWait: 5 }),
    run('{ streams: [] }', 'did you mean "stream"?', { operator: 'kim', streams: [] }),
    run('{ signal: 5 }', 'signal must have the methods addEventListener', { operator: 'kim', signal: 5 }),
    refused('a stream without a policy', 'NOT_FOUND', 'There is no retention policy of stream', (scene) =>
      retention(scene).run({ operator: 'kim', stream: "x' or '1'='1" }),
    ),
    refused('an outbox without policies', 'INVALID_STATE', 'There is no retention policy', ({ outbox }) =>
      outbox.retention.run({ operator: 'kim' }),
    ),
    invalid('retention.status(5)', 'the policy must be text that is not empty, but is 5', ({ outbox }) =>
      outbox.retention.status(wrong(5)),
    ),
    sqlRefused(`select outbox_retain(404, 'kim', null, 'x')`, 'P0002', 'retention run 404 does not exist'),
    sqlRefused(`select outbox_retain(404, ' ', null, 'x')`, '22023', "an operator's name is needed"),
    sqlRefused(`select outbox_retain(404, 'policy:x', null, 'x')`, '22023', 'an operator is a person'),
    sqlRefused(`select outbox_begin_retention('x', '{}')`, '22023', 'a retention policy needs a name'),
    sqlRefused(
      `select outbox_purge_archive('audit', 'events', '0', 'kim')`,
      'P0002',
      'there is no archive audit.events',
    ),
    sqlRefused('delete from outbox_archived', '55000', 'what was written is immutable'),
    cli(['retain', 'run'], 2, 'USAGE', '--operator is missing'),
    cli(['retain', 'walk'], 2, 'USAGE', 'retain'),
  ],
}
