import { describe, expect, test } from 'vitest'
import { findingsKo } from '../../src/cli/messages/findings-ko.ts'
import { reasonsKo } from '../../src/cli/messages/reasons-ko.ts'
import { examine } from '../../src/inspect/examine.ts'
import type { FindingCode, FindingFacts, JudgedFinding } from '../../src/inspect/finding.ts'
import { findingText, findingTexts } from '../../src/inspect/finding-texts.ts'
import { queryWithoutValues } from '../../src/inspect/query-text.ts'
import { reasonTexts, sentenceOf } from '../../src/inspect/reason-texts.ts'
import { plainWording } from '../../src/inspect/wording.ts'
import type { DoctorFacts, DoctorLimits, SchemaFacts, XminHolder } from '../../src/store/doctor-facts.ts'

const at = new Date('2026-01-01T00:00:00Z')
const limits: DoctorLimits = {
  deadTuples: 10,
  bloatBytes: 10,
  transactionSeconds: 10,
  slotTransactions: 10,
  clockSkewMs: 10,
  leaseSeconds: 10,
}
const schema: SchemaFacts = { state: 'missing', found: null, needed: 8, changed: [] }
const facts: DoctorFacts = {
  schema,
  settings: { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on' },
  clock: { database: at, before: at, after: at },
  seesAllSessions: true,
  holders: [],
  tables: null,
}
const codes = (changed: Partial<DoctorFacts>): readonly string[] =>
  examine({ ...facts, ...changed }, limits, null)
    .filter(({ severity }) => severity !== 'ok')
    .map(({ check, severity, code }) => `${check} ${severity} ${code}`)

describe('the judgement of the doctor', () => {
  test.each(['fsync', 'full_page_writes'] as const)('%s off is a problem', (setting) => {
    expect(codes({ settings: { ...facts.settings, [setting]: 'off' } })).toContain(
      'durability problem NOT_DURABLE',
    )
  })

  const holder: XminHolder = {
    kind: 'session',
    name: 's',
    pid: 1,
    query: null,
    seconds: 11,
    transactions: 1,
  }
  test.each([
    [holder, true],
    [{ ...holder, seconds: 10 }, false],
    [{ ...holder, kind: 'slot', seconds: null, transactions: 11 }, true],
    [{ ...holder, kind: 'slot', seconds: null, transactions: 10 }, false],
    [{ ...holder, kind: 'standby', seconds: null, transactions: 11 }, true],
    [{ ...holder, kind: 'standby', seconds: null, transactions: 10 }, false],
  ] as const)('a holder is told of once it is past its limit: %o', (given, isTold) => {
    expect(codes({ holders: [given] }).includes('xmin warning XMIN_HELD')).toBe(isTold)
  })

  test('a clock is wrong only by what the way to the database cannot explain', () => {
    const later = new Date(at.getTime() + 1_000)
    expect(codes({ clock: { database: at, before: at, after: later } })).not.toContain(
      'clock warning CLOCK_SKEW',
    )
    expect(codes({ clock: { database: later, before: at, after: at } })).toContain('clock warning CLOCK_SKEW')
    expect(codes({ clock: { database: at, before: later, after: later } })).toContain(
      'clock warning CLOCK_SKEW',
    )
  })

  test.each([
    ['missing', 'commitpost migrate up'],
    ['behind', 'commitpost migrate up'],
    ['ahead', 'Upgrade'],
  ] as const)('a schema that is %s comes with what to do', (state, advice) => {
    const [finding] = examine({ ...facts, schema: { ...schema, state } }, limits, null)
    if (finding === undefined) throw new Error('nothing was found')
    expect(findingText(finding, findingTexts, plainWording).advice).toContain(advice)
    expect(findingText(finding, findingsKo, plainWording).message).toMatch(/[가-힣]/)
  })

  test('a holder is described in both languages', () => {
    const [, finding] = examine({ ...facts, holders: [{ ...holder, query: 'select 1' }] }, limits, null)
    if (finding === undefined) throw new Error('nothing was found')
    expect(findingText(finding, findingTexts, plainWording)).toEqual({
      message:
        'Process 1 ("s") keeps the server from cleaning up: 1 transactions ago, for 11 s. Its last statement: select ?',
      advice: 'Let it end its transaction, or end it: select pg_terminate_backend(1)',
    })
    expect(findingText(finding, findingsKo, plainWording).message).toContain('프로세스 1 "s"')
  })
})

/** One of each that calls for somebody, as the tables and the server may give it. */
const CALLS: { readonly [Code in FindingCode]?: FindingFacts[Code] } = {
  SCHEMA_NOT_CURRENT: { state: 'behind', found: 3, needed: 8 },
  SCHEMA_CHANGED: { steps: ['0001_core'] },
  OBJECT_BROKEN: { kind: 'index', name: 'outbox_event_xid', problem: 'missing', table: null },
  RIGHT_SURPLUS: { role: 'public', right: 'SELECT', object: 'outbox_event' },
  TABLES_UNREADABLE: { tables: ['outbox_event'] },
  DEAD_TUPLES: { table: 'outbox_delivery', deadTuples: 5, liveTuples: 1, lastVacuum: null },
  BLOAT: { table: 'outbox_delivery', bytes: 5, wastedBytes: 4 },
  AUTOVACUUM_OFF: { table: 'outbox_delivery' },
  PARTITIONS_SHORT: { madeUntil: at, daysAhead: 0 },
  PARTITIONS_MISSING: { partitions: ['outbox_event_20261117'] },
  PARTITIONS_UNEXPECTED: { partitions: ['outbox_event_default'] },
  PARTITIONING_UNFINISHED: { madeUntil: at, daysAhead: 1 },
  XMIN_HELD: { kind: 'slot', name: 's', pid: null, query: null, seconds: null, transactions: 1 },
  SESSIONS_HIDDEN: {},
  NOT_DURABLE: { setting: 'fsync', value: 'off' },
  CLOCK_SKEW: { skewMs: 5_000 },
  LEASES_LAPSED: { subscription: 'mailer', count: 1, seconds: 90 },
  PAUSED: { subscription: 'mailer', by: 'kim', at },
  TYPES_UNKNOWN: { types: [{ stream: 's', eventType: 'T', count: 1 }] },
  NO_WORKER: { subscription: 'mailer', hasPending: true },
}
const FINE: readonly FindingCode[] = [
  'SCHEMA_CURRENT',
  'OBJECTS_SOUND',
  'RIGHTS_SOUND',
  'TABLES_LEAN',
  'PARTITIONS_AHEAD',
  'XMIN_FREE',
  'DURABLE',
  'CLOCKS_AGREE',
  'LEASES_SOUND',
  'NONE_PAUSED',
  'TYPES_KNOWN',
  'TYPES_NOT_COMPARED',
  'ALL_SERVED',
]

describe('the advice of the doctor', () => {
  test('is there for every finding that calls for somebody', () => {
    expect(Object.keys(findingTexts).toSorted()).toEqual([...Object.keys(CALLS), ...FINE].toSorted())
    expect(Object.keys(findingsKo).toSorted()).toEqual(Object.keys(findingTexts).toSorted())
  })

  test.each(Object.entries(CALLS))('of %s is given in English and in Korean', (code, given) => {
    const finding = { check: 'schema', severity: 'problem', code, facts: given } as JudgedFinding
    const english = findingText(finding, findingTexts, plainWording)
    const korean = findingText(finding, findingsKo, plainWording)
    expect(english.message).toMatch(/[a-z]/)
    expect(english.advice).toMatch(/[a-z]{3}/)
    expect(korean.message).toMatch(/[가-힣]/)
    expect(korean.advice).toMatch(/[가-힣]/)
    expect(`${english.message} ${english.advice}`).not.toMatch(/[가-힣]|undefined|null/)
    expect(`${korean.message} ${korean.advice}`).not.toMatch(/undefined|null/)
  })
})

test('an index that is invalid has to be dropped first, in both languages', () => {
  const finding: JudgedFinding = {
    check: 'objects',
    severity: 'problem',
    code: 'OBJECT_BROKEN',
    facts: { kind: 'index', name: 'outbox_delivery_due', problem: 'invalid', table: null },
  }
  expect(findingText(finding, findingTexts, plainWording).advice).toContain('drop it first')
  expect(findingText(finding, findingsKo, plainWording).advice).toMatch(/^지우고 다시 만드십시오/)
})

test('the name of a prepared transaction stands in the advice as SQL takes it, in both languages', () => {
  const finding: JudgedFinding = {
    check: 'xmin',
    severity: 'warning',
    code: 'XMIN_HELD',
    facts: { kind: 'prepared', name: "kim's", pid: null, query: null, seconds: 90, transactions: 1 },
  }
  expect(findingText(finding, findingTexts, plainWording).advice).toContain("rollback prepared 'kim''s'")
  expect(findingText(finding, findingsKo, plainWording).advice).toContain("rollback prepared 'kim''s'")
})

describe('a statement that is shown', () => {
  test.each([
    [
      `select * from t where a = 'it''s' and b = 42 and c = 1.5`,
      'select * from t where a = ? and b = ? and c = ?',
    ],
    [`select e'a\\'b', $$body 'x'$$, $tag$ $$ $tag$, $1`, 'select ?, ?, ?, $1'],
    ['select 1 -- password 7\n  from t1', 'select ? from t1'],
    ['select /* secret\n */ a1', 'select a1'],
    [`insert into t values ('cut off`, 'insert into t values (?'],
    [String.raw`select 'C:\' as path, 'secret' as key`, 'select ? as path, ? as key'],
    [`select "a 1" from "t"`, 'select "a 1" from "t"'],
  ])('has no values in it: %s', (query, shown) => {
    expect(queryWithoutValues(query)).toBe(shown)
  })

  test('is cut', () => {
    expect(queryWithoutValues(`select ${'x'.repeat(1_000)}`)).toHaveLength(201)
  })
})

describe('reasons', () => {
  test.each([
    [
      { kind: 'paused', by: 'kim', at },
      'The subscription is paused, by kim, since 2026-01-01T00:00:00.000Z.',
    ],
    [
      { kind: 'suspect', at: null },
      'Its worker vanished while it had this and others in hand: it runs apart from them next time.',
    ],
    [
      { kind: 'joining', waitsFor: { pid: null, name: 'p', seconds: null } },
      'The subscription is joining and waits for the prepared transaction "p": the event comes once it has joined.',
    ],
  ] as const)('are one sentence: %o', (reason, sentence) => {
    expect(sentenceOf(reason, reasonTexts, plainWording)).toBe(sentence)
    expect(sentenceOf(reason, reasonsKo, plainWording)).toMatch(/[가-힣].*\.$/)
  })
})
