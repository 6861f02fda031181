import { borne, type Group, invalid, type Refusal, refused, wrong } from '../row.ts'
import type { HostileOutbox } from '../scene.ts'

const kim = { operator: 'kim' }
type Letters = HostileOutbox['deadLetters']

const letters = (does: string, says: string, run: (letters: Letters) => unknown): Refusal =>
  invalid(`deadLetters.${does}`, says, ({ outbox }) => run(outbox.deadLetters))

const NO_ID = 'the id must be a whole number as text, as `list` returns it'

export const operators: Group = {
  title: 'Dead letters, pause and resume',
  rows: [
    letters('list(null)', 'the query must be an object, but is null', (all) => all.list(wrong(null))),
    letters("list('mailer')", 'the query must be an object, but is "mailer"', (all) =>
      all.list(wrong('mailer')),
    ),
    letters('list({ limit: 0 })', 'limit must be a whole number from 1 to 1000, but is 0', (all) =>
      all.list({ limit: 0 }),
    ),
    letters("list({ limit: '5' })", 'limit must be a whole number', (all) => all.list({ limit: wrong('5') })),
    letters('list({ limit: 1001 })', 'limit must be a whole number from 1 to 1000', (all) =>
      all.list({ limit: 1001 }),
    ),
    letters("list({ resolved: 'yes' })", 'resolved must be true or false, but is "yes"', (all) =>
      all.list({ resolved: wrong('yes') }),
    ),
    letters('list({ subscription: 5 })', 'subscription must be text that is not empty, but is 5', (all) =>
      all.list({ subscription: wrong(5) }),
    ),
    letters('list({ subscription: with a NUL })', 'subscription must not contain a NUL character', (all) =>
      all.list({ subscription: 'a\0' }),
    ),
    letters('list({ errorCode: {} })', 'errorCode must be text that is not empty', (all) =>
      all.list({ errorCode: wrong({}) }),
    ),
    letters("list({ before: 'x' })", NO_ID, (all) => all.list({ before: 'x' })),
    letters('list({ befor: … })', 'did you mean "before"?', (all) => all.list(wrong({ befor: '1' }))),
    letters('count({ limit: 5 })', 'there is no option "limit"', (all) => all.count(wrong({ limit: 5 }))),
    letters("count({ resolved: 'x' })", 'resolved must be true or false', (all) =>
      all.count({ resolved: wrong('x') }),
    ),
    letters('show()', NO_ID, (all) => all.show(wrong(undefined))),
    letters('show(5)', NO_ID, (all) => all.show(wrong(5))),
    letters("show('0')", NO_ID, (all) => all.show('0')),
    letters("show('1; drop table orders')", NO_ID, (all) => all.show('1; drop table orders')),
    letters("show('9223372036854775808'), 2^63", 'id must be a positive whole number', (all) =>
      all.show('9223372036854775808'),
    ),
    refused("deadLetters.show('404')", 'NOT_FOUND', 'There is no dead letter "404"', ({ outbox }) =>
      outbox.deadLetters.show('404'),
    ),
    letters("retry('1')", 'the act must be { operator, note? }, but is undefined', (all) =>
      all.retry('1', wrong(undefined)),
    ),
    letters("retry('1', { operator: ' ' })", 'operator must name who does this', (all) =>
      all.retry('1', { operator: ' ' }),
    ),
    letters("retry('1', { operator: 5 })", 'operator must name who does this', (all) =>
      all.retry('1', { operator: wrong(5) }),
    ),
    letters("retry('1', { …, note: 5 })", 'note must be text, but is 5', (all) =>
      all.retry('1', { ...kim, note: wrong(5) }),
    ),
    letters("retry('1', { …, reason: 'x' })", 'there is no option "reason"', (all) =>
      all.retry('1', wrong({ ...kim, reason: 'x' })),
    ),
    refused("deadLetters.retry('404', …)", 'NOT_FOUND', 'There is no dead letter "404"', ({ outbox }) =>
      outbox.deadLetters.retry('404', kim),
    ),
    refused("deadLetters.resolve('404', …)", 'NOT_FOUND', 'There is no dead letter "404"', ({ outbox }) =>
      outbox.deadLetters.resolve('404', kim),
    ),
    refused(
      'pause of a subscription that is not there',
      'NOT_FOUND',
      'There is no subscription "nobody"',
      ({ outbox }) => outbox.pause('nobody', kim),
    ),
    invalid('pause(undefined, …)', 'the subscription must be text that is not empty', ({ outbox }) =>
      outbox.pause(wrong(undefined), kim),
    ),
    invalid('pause of a name with a NUL', 'the subscription must not contain a NUL character', ({ outbox }) =>
      outbox.pause('a\0', kim),
    ),
    invalid("resume('mailer')", 'the act must be { operator, note? }', ({ outbox }) =>
      outbox.resume('mailer', wrong(undefined)),
    ),
    borne('deadLetters.list() by a name that quotes SQL', 'finds nothing', [], async ({ outbox }) => [
      ...(await outbox.deadLetters.list({ subscription: "x' or '1'='1" })),
    ]),
  ],
}
