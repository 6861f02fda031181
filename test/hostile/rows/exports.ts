import { tmpdir } from 'node:os'
import type { ExportRunOptions } from '../../../src/index.ts'
import { createMasking, verifyExportFiles } from '../../../src/index.ts'
import { type Group, invalid, type Refusal, refused, wrong } from '../row.ts'

const run = (does: string, says: string, options: object): Refusal =>
  invalid(`exports.run({ …, ${does} })`, says, ({ outbox }) => outbox.exports.run(given(options)))

function given(options: object): ExportRunOptions {
  return { stream: 'shop.order', directory: tmpdir(), operator: 'kim', ...options }
}

export const exported: Group = {
  title: 'Exports and masking',
  rows: [
    invalid('exports.run()', 'the options must be an object, but is undefined', ({ outbox }) =>
      outbox.exports.run(wrong(undefined)),
    ),
    run("operator: ' '", 'operator must name who does this', { operator: ' ' }),
    run('note: 1 MB of text', 'note must be at most 2000 characters long', { note: 'x'.repeat(1_048_576) }),
    run("stream: ''", 'stream must be text that is not empty', { stream: '' }),
    run('stream: with a NUL', 'stream contains a NUL character', { stream: 'a\0' }),
    run('directory: 7', 'directory must be text that is not empty, but is 7', { directory: 7 }),
    run("until: '24h'", 'until must be a Date, but is "24h"', { until: '24h' }),
    run("olderThan: 'a week'", 'olderThan must be milliseconds (1500) or text with a unit', {
      olderThan: 'a week',
    }),
    run("olderThan: '40000d'", 'olderThan must be at most 100 years', { olderThan: '40000d' }),
    run("until, olderThan: '1d'", 'give until or olderThan, not both', {
      until: new Date(0),
      olderThan: '1d',
    }),
    run('maxFileEvents: 0', 'maxFileEvents must be a whole number from 1 to 500000, but is 0', {
      maxFileEvents: 0,
    }),
    run('waitMs: -1', 'waitMs must be a whole number from 0 to 86400000, but is -1', { waitMs: -1 }),
    run("reveal: 'yes'", 'reveal must be true or false, but is "yes"', { reveal: 'yes' }),
    run('signal: {}', 'signal must be an AbortSignal', { signal: {} }),
    run('onProgress: 7', 'onProgress must be a function, but is 7', { onProgress: 7 }),
    run('dir: …', 'there is no option "dir"', { dir: '/' }),
    refused(
      "exports.run({ …, stream: 'unheard' })",
      'NOT_FOUND',
      'There is no stream "unheard"',
      ({ outbox }) => outbox.exports.run(given({ stream: 'unheard' })),
    ),
    refused('exports.run({ …, directory: that is not there })', 'FILE_ERROR', '(ENOENT)', ({ outbox }) =>
      outbox.exports.run(given({ directory: '/nowhere/at/all' })),
    ),
    invalid("exports.list({ before: '0' })", 'before must be the id of an export, but is "0"', ({ outbox }) =>
      outbox.exports.list({ before: '0' }),
    ),
    invalid(
      'exports.list({ limit: 0 })',
      'limit must be a whole number from 1 to 1000, but is 0',
      ({ outbox }) => outbox.exports.list({ limit: 0 }),
    ),
    invalid("exports.verify('')", 'the path must be text that is not empty', ({ outbox }) =>
      outbox.exports.verify(''),
    ),
    invalid('exports.verify(path, { operator: … none })', 'operator must name who does this', ({ outbox }) =>
      outbox.exports.verify('/', wrong({})),
    ),
    refused('exports.verify(a path that is not there)', 'FILE_ERROR', '(ENOENT)', ({ outbox }) =>
      outbox.exports.verify('/nowhere/at/all'),
    ),
    refused('verifyExportFiles(a path that is not there)', 'FILE_ERROR', '(ENOENT)', () =>
      verifyExportFiles('/nowhere/at/all'),
    ),
    refused(
      'exports.list() on a schema that nobody migrated',
      'SCHEMA_MISSING',
      'There are no Commitpost tables in schema',
      ({ unmigrated }) => unmigrated.exports.list(),
    ),
    invalid(
      "deadLetters.show('1', { reveal: true })",
      'reveal: the act must be { operator, note? }',
      ({ outbox }) => outbox.deadLetters.show('1', { reveal: wrong(true) }),
    ),
    invalid('deadLetters.list({}, { revael: … })', 'did you mean "reveal"?', ({ outbox }) =>
      outbox.deadLetters.list({}, wrong({ revael: {} })),
    ),
    invalid('createMasking(undefined)', 'the catalogue must have the methods find, findStored', () =>
      createMasking(wrong(undefined)),
    ),
    invalid(
      "createMasking(null, { logs: 'keep' })",
      'sensitive: there is no option "logs"; did you mean "log"?',
      () => createMasking(null, wrong({ logs: 'keep' })),
    ),
  ],
}
