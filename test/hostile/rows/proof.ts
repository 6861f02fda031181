import { type Group, invalid, type Refusal, refused, wrong } from '../row.ts'
import type { HostileOutbox } from '../scene.ts'

type Proof = HostileOutbox['proof']

const proof = (does: string, says: string, run: (proof: Proof) => unknown): Refusal =>
  invalid(`proof.${does}`, says, ({ outbox }) => run(outbox.proof))

const NO_ID = 'the event id must be a UUID, as publish returns it'

export const proofs: Group = {
  title: 'Verify, doctor, why',
  rows: [
    proof('verify(null)', 'the options must be an object, but is null', (of) => of.verify(wrong(null))),
    proof('verify({ sinse: … })', 'did you mean "since"?', (of) => of.verify(wrong({ sinse: new Date(0) }))),
    proof("verify({ since: '24h' })", 'since must be a Date of the years 1970 to 9998, but is "24h"', (of) =>
      of.verify({ since: wrong('24h') }),
    ),
    proof('verify({ until: an invalid Date })', 'until must be a Date', (of) =>
      of.verify({ until: new Date(Number.NaN) }),
    ),
    proof('verify({ since, until: the same })', 'until must be later than since', (of) =>
      of.verify({ since: new Date(0), until: new Date(0) }),
    ),
    proof("verify({ subscription: '' })", 'subscription must be text that is not empty', (of) =>
      of.verify({ subscription: '' }),
    ),
    proof('verify({ subscription: with a NUL })', 'subscription must not contain a NUL character', (of) =>
      of.verify({ subscription: 'a\0' }),
    ),
    proof('verify({ limit: -1 })', 'limit must be a whole number from 0 to 10000, but is -1', (of) =>
      of.verify({ limit: -1 }),
    ),
    refused(
      "proof.verify({ subscription: 'nobody' })",
      'NOT_FOUND',
      'There is no subscription "nobody"',
      ({ outbox }) => outbox.proof.verify({ subscription: 'nobody' }),
    ),
    proof('why()', NO_ID, (of) => of.why(wrong(undefined))),
    proof("why('17')", NO_ID, (of) => of.why('17')),
    proof('why(an id with more after it)', NO_ID, (of) =>
      of.why('00000000-0000-4000-8000-000000000000; drop table orders'),
    ),
    proof("doctor('all')", 'the options must be an object, but is "all"', (of) => of.doctor(wrong('all'))),
    proof('doctor({ clockSkewMs: -1 })', 'clockSkewMs must be a whole number from 0', (of) =>
      of.doctor({ clockSkewMs: -1 }),
    ),
    proof("doctor({ eventTypes: 'A' })", 'eventTypes must be a list of stored types, but is "A"', (of) =>
      of.doctor({ eventTypes: wrong('A') }),
    ),
    proof('doctor({ clockSkew: 5 })', 'did you mean "clockSkewMs"?', (of) =>
      of.doctor(wrong({ clockSkew: 5 })),
    ),
    refused(
      'proof.verify() on a schema that nobody migrated',
      'SCHEMA_MISSING',
      'There are no Commitpost tables in schema',
      ({ unmigrated }) => unmigrated.proof.verify(),
    ),
    refused(
      'proof.audit() on a schema that nobody migrated',
      'SCHEMA_MISSING',
      'There are no Commitpost tables in schema',
      ({ unmigrated }) => unmigrated.proof.audit(),
    ),
  ],
}
