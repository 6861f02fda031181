import { borne, type Group, invalid, type Refusal, refused, wrong } from '../row.ts'
import type { HostileOutbox } from '../scene.ts'

const kim = { operator: 'kim' }
type Redrive = HostileOutbox['redrive']

const redrive = (does: string, says: string, run: (redrive: Redrive) => unknown): Refusal =>
  invalid(`redrive.${does}`, says, ({ outbox }) => run(outbox.redrive))

const planned = (does: string, says: string, filter: object): Refusal =>
  redrive(`plan(${does})`, says, (all) => all.plan(wrong(filter)))

const applied = (does: string, says: string, act: object): Refusal =>
  redrive(`apply('1', { …, ${does} })`, says, (all) => all.apply('1', wrong({ ...kim, ...act })))

const policy = (does: string, says: string, given: unknown): Refusal =>
  invalid(`subscription('s', { …, redrive: ${does} })`, says, ({ outbox }) =>
    outbox.subscription('s', { on: { OrderPlaced: () => undefined }, redrive: wrong(given) }),
  )

const good = { name: 'transient', codes: ['ECONNRESET'], after: '5m' } as const
const NO_ID = 'the id must be a whole number as text, as `plan` returns it'

export const redrives: Group = {
  title: 'Re-driving many, and keys moved aside',
  rows: [
    redrive('plan(null)', 'the filter must be an object, but is null', (all) => all.plan(wrong(null))),
    planned("{ subscripton: 'mailer' }", 'did you mean "subscription"?', { subscripton: 'mailer' }),
    planned('{ subscription: 5 }', 'subscription must be text that is not empty, but is 5', {
      subscription: 5,
    }),
    planned('{ stream: with a NUL }', 'stream must not contain a NUL character', { stream: 'a\0' }),
    planned("{ reason: 'BAD_LUCK' }", 'reason must be one of', { reason: 'BAD_LUCK' }),
    planned('{ fingerprint: 5 }', 'fingerprint must be text that is not empty, but is 5', { fingerprint: 5 }),
    planned('{ orderingKey: 5 }', 'orderingKey must be text that is not empty, but is 5', { orderingKey: 5 }),
    planned("{ failedFrom: 'yesterday' }", 'failedFrom must be a valid Date, but is "yesterday"', {
      failedFrom: 'yesterday',
    }),
    planned('{ failedTo: an invalid Date }', 'failedTo must be a valid Date, but is an invalid one', {
      failedTo: new Date('x'),
    }),
    planned('{ ids: [] }', 'ids must be a list of 1 to 10000 whole numbers as text', { ids: [] }),
    planned('{ ids: [1] }', 'ids must be a list of 1 to 10000 whole numbers as text', { ids: [1] }),
    refused('a plan that matches nothing', 'NOT_FOUND', 'No open dead letter', ({ outbox }) =>
      outbox.redrive.plan({ subscription: 'nobody' }),
    ),
    refused('a plan of a name that quotes SQL', 'NOT_FOUND', 'No open dead letter', ({ outbox }) =>
      outbox.redrive.plan({ subscription: "x' or '1'='1" }),
    ),
    redrive('status(1)', NO_ID, (all) => all.status(wrong(1))),
    redrive("status('1; drop table orders')", NO_ID, (all) => all.status('1; drop table orders')),
    redrive("status('9223372036854775808'), 2^63", 'id must be a positive whole number', (all) =>
      all.status('9223372036854775808'),
    ),
    redrive("apply('x', …)", NO_ID, (all) => all.apply('x', kim)),
    redrive("apply('1')", 'the act must be { operator, note? }, but is undefined', (all) =>
      all.apply('1', wrong(undefined)),
    ),
    applied("operator: ' '", 'operator must name who does this', { operator: ' ' }),
    applied("operator: 'policy:x'", 'operator must be the name of a person', { operator: 'policy:x' }),
    applied('ratePerSecond: 0', 'ratePerSecond must be a number above 0 and at most 10000', {
      ratePerSecond: 0,
    }),
    applied("ratePerSecond: '10/s'", 'ratePerSecond must be a number above 0', { ratePerSecond: '10/s' }),
    applied('ratePerSecond: NaN', 'or null, but is NaN', { ratePerSecond: Number.NaN }),
    applied('stopWhenFailedShare: 50', 'stopWhenFailedShare must be a number above 0 and at most 1', {
      stopWhenFailedShare: 50,
    }),
    applied('minSample: 0', 'minSample must be a whole number from 1', { minSample: 0 }),
    applied('atOnce: 1.5', 'atOnce must be a whole number from 1', { atOnce: 1.5 }),
    applied("resume: 'yes'", 'resume must be true or false, but is "yes"', { resume: 'yes' }),
    applied('onProgress: 5', 'onProgress must be a function, but is 5', { onProgress: 5 }),
    applied('signal: {}', 'signal must have the methods addEventListener', { signal: {} }),
    applied('rate: 5', 'there is no option "rate"', { rate: 5 }),
    refused("redrive.apply('404', …)", 'NOT_FOUND', 'There is no plan "404"', ({ outbox }) =>
      outbox.redrive.apply('404', kim),
    ),
    refused("redrive.cancel('404', …)", 'NOT_FOUND', 'There is no plan "404"', ({ outbox }) =>
      outbox.redrive.cancel('404', kim),
    ),
    redrive("cancel('1', { operator: '' })", 'operator must name who does this', (all) =>
      all.cancel('1', { operator: '' }),
    ),
    invalid('moveAside(undefined, …)', 'the subscription must be text that is not empty', ({ outbox }) =>
      outbox.moveAside(wrong(undefined), 'order:1', kim),
    ),
    invalid("moveAside('mailer', undefined, …)", 'orderingKey must be text that is not empty', ({ outbox }) =>
      outbox.moveAside('mailer', wrong(undefined), kim),
    ),
    invalid('moveAside without an operator', 'the act must be { operator, note? }', ({ outbox }) =>
      outbox.moveAside('mailer', 'order:1', wrong(undefined)),
    ),
    refused('moveAside of nobody', 'NOT_FOUND', 'There is no subscription "nobody"', ({ outbox }) =>
      outbox.moveAside('nobody', 'order:1', kim),
    ),
    policy('true', 'redrive must be an object, but is true', true),
    policy('{}', 'redrive.name must be 1 to 100 letters', {}),
    policy("{ …, name: 'a b' }", 'redrive.name must be 1 to 100 letters', { ...good, name: 'a b' }),
    policy('{ …, codes: [] }', 'redrive.codes must be a list of at least one error code', {
      ...good,
      codes: [],
    }),
    policy("{ …, codes: ['*'] }", "redrive.codes must be error codes such as 'ECONNREFUSED'", {
      ...good,
      codes: ['*'],
    }),
    policy("{ …, codes: ['MOVED_ASIDE'] }", 'MOVED_ASIDE is what a person decided', {
      ...good,
      codes: ['MOVED_ASIDE'],
    }),
    policy("{ …, after: 'soon' }", 'redrive.after must be milliseconds (1500) or text with a unit', {
      ...good,
      after: 'soon',
    }),
    policy('{ …, factor: 0 }', 'redrive.factor must be a number from 1 to 100, but is 0', {
      ...good,
      factor: 0,
    }),
    policy('{ …, atMost: 0 }', 'redrive.atMost must be a whole number from 1 to 100, but is 0', {
      ...good,
      atMost: 0,
    }),
    policy('{ …, delay: 5 }', 'redrive: there is no option "delay"', { ...good, delay: 5 }),
    borne('redrive.plan() with an error code of 1 MB', 'finds nothing', 'NOT_FOUND', async ({ outbox }) => {
      const attempt = outbox.redrive.plan({ errorCode: 'x'.repeat(1_048_576) })
      return attempt.then(
        () => 'planned',
        (error: { readonly code?: string }) => error.code,
      )
    }),
  ],
}
