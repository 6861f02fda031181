import { readdir, readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { describeFailure } from '../../src/cli/failure.ts'
import { messagesIn } from '../../src/cli/messages/dictionaries.ts'
import {
  createOutbox,
  defineEvents,
  InvalidEventError,
  NotFoundError,
  type Outbox,
  REFUSAL_REASONS,
  type RefusalReason,
  RefusedError,
  SchemaMissingError,
  SchemaVersionError,
  SubscriptionConflictError,
  type Transaction,
  unchecked,
} from '../../src/index.ts'
import { CommitpostError, DeadlineExceededError } from '../../src/runtime/errors.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { rejection } from '../acceptance/support.ts'
import { createTestDatabaseWithTables, type TestDatabase } from '../support/database.ts'
import { expectKorean } from './korean.ts'
import { makeDeadLetter } from './support.ts'

const messages = await messagesIn('ko')
const korean = (error: unknown): string => describeFailure(error, messages).message

const MIGRATIONS = new URL('../../src/store/postgres/migrations/', import.meta.url)

/** What the functions of the database refuse: the reason, and the names of what its data has. */
async function refusalsInSql(): Promise<readonly (readonly [reason: string, names: readonly string[]])[]> {
  const files = (await readdir(MIGRATIONS)).filter((name) => name.endsWith('.sql'))
  const texts = await Promise.all(files.map((name) => readFile(new URL(name, MIGRATIONS), 'utf8')))
  const raised = /constraint = '([\w-]+)'(?! \|\|)[^;]*?detail = json_build_object\(([^;]*?)\)[,;)]/g
  return texts.flatMap((text) =>
    [...text.matchAll(raised)].map(
      ([, reason = '', args = '']) =>
        [reason, [...args.matchAll(/'(\w+)',/g)].map(([, name = '']) => name)] as const,
    ),
  )
}

/** What the library refuses by itself, and what its data has. */
const BY_ITSELF: Readonly<Partial<Record<RefusalReason, readonly string[]>>> = {
  'letter-retried': ['id', 'by'],
  'letter-resolved': ['id', 'by'],
  'letter-amended': ['id', 'by'],
  'subscription-locked': ['subscription'],
  'monitor-busy': [],
  'no-retention-policy': [],
  'removed-meanwhile': ['events'],
  'transaction-open': ['waitMs'],
  'partition-unprepared': [],
  'partition-locked': [],
  'migration-changed': ['version', 'name', 'at'],
  'type-not-in-catalogue': ['event', 'type'],
  'export-unrecorded': ['path'],
  'export-unreadable': ['path', 'code'],
  'export-missing': ['path', 'code'],
  'not-an-export': ['path', 'code'],
  'directory-unusable': ['path', 'code'],
  'directory-is-file': ['path', 'code'],
  'directory-not-made': ['path', 'code'],
  'export-not-written': ['path', 'code'],
  'stream-of-store': ['subscription'],
  'stream-without-pool': [],
  'stream-unpublished': ['statement'],
  'stream-publication-lost': [],
  'stream-of-standby': [],
  'stream-wal-level': ['level'],
  'stream-without-connection': ['said'],
  'stream-not-allowed': ['state', 'said', 'role'],
  'stream-without-slot': [],
  'stream-slot-in-use': ['slot'],
  'stream-columns-missing': ['columns'],
  'stream-log-too-long': [],
}

test('every refusal has a Korean text that needs no more than its data', async () => {
  const refusals = [...(await refusalsInSql()), ...Object.entries(BY_ITSELF)]
  for (const [reason, names] of refusals) {
    expect(REFUSAL_REASONS).toHaveProperty(reason)
    const data = Object.fromEntries(names.map((name) => [name, 'X']))
    expectKorean(
      korean(new RefusedError(reason as RefusalReason, 'It is refused in plain English.', { data })),
    )
  }
  expect(new Set(refusals.map(([reason]) => reason))).toEqual(new Set(Object.keys(REFUSAL_REASONS)))
})

test('every other error that commands meet has one too', () => {
  const unreachable = new Error('connect ECONNREFUSED')
  const errors = [
    ...(
      [
        'dead letter',
        'export',
        'matching dead letter',
        'named dead letter',
        'plan',
        'stream',
        'subscription',
      ] as const
    ).map((what) => new NotFoundError(what, '9')),
    new NotFoundError('retention policy', 'shop', { message: 'There is none of it.', known: ['a', 'b'] }),
    new NotFoundError('retention run', 'nope', { message: 'There is none of it.', known: ['a', 'b'] }),
    new SchemaMissingError('shop'),
    new SchemaVersionError(3, 4),
    new SchemaVersionError(5, 4),
    new SubscriptionConflictError('mailer', 'it is ordered in another way here', {
      registered: "order: 'none'",
      declared: "order: 'aggregate', lanes: 8",
    }),
    new DeadlineExceededError('A statement of ours', 500),
    new CommitpostError('STORE_UNAVAILABLE', 'It could not be reached.', { cause: unreachable }),
    ...(['UNKNOWN_EVENT_TYPE', 'PAYLOAD_NOT_STORABLE', 'PAYLOAD_TOO_LARGE', 'INVALID_EVENT'] as const).map(
      (code) => new InvalidEventError('event', [{ code, path: 'payload', message: 'contains itself' }]),
    ),
  ]
  for (const error of errors) expectKorean(korean(error))
})

test('what is wrong with an event is told with its place and its limits, whatever its form', () => {
  const error = new InvalidEventError('event', [
    {
      code: 'PAYLOAD_TOO_LARGE',
      path: 'payload',
      message:
        'is 2000002 bytes; the limit is 1048576 bytes (option maxPayloadBytes). Store it elsewhere and publish its address',
    },
    {
      code: 'INVALID_EVENT',
      path: 'aggregateId',
      message: 'must be at most 255 characters long, but is 300',
      index: 3,
    },
    { code: 'PAYLOAD_NOT_STORABLE', path: 'payload.n', message: 'is NaN, which JSON cannot hold' },
    { code: 'INVALID_EVENT', path: 'moon', message: 'is made of cheese' },
  ])
  expect(korean(error).split('\n')).toEqual([
    '이벤트가 올바르지 않아 아무것도 쓰지 않았습니다:',
    '- payload: 2000002바이트입니다. 한도는 1048576바이트입니다(maxPayloadBytes 옵션). 다른 곳에 저장하고 그 주소를 발행하십시오',
    '- [3] aggregateId: 255자 이하여야 합니다. 지금 값: 300',
    '- payload.n: NaN은(는) JSON에 담을 수 없습니다',
    '- moon: 올바르지 않은 값입니다 (is made of cheese)',
  ])
})

const events = defineEvents({
  OrderPlaced: { stream: 'shop.order', aggregate: 'order', schema: unchecked<object>() },
})

describe('as the database refuses it', () => {
  let database: TestDatabase
  let outbox: Outbox<typeof events, Transaction>
  let letterId: string

  beforeAll(async () => {
    database = await createTestDatabaseWithTables()
    letterId = await makeDeadLetter(database)
    const store = postgresStore({ pool: database.pool, schema: database.schema })
    outbox = createOutbox({ store, events })
  })
  afterAll(async () => {
    await database.drop()
  })

  const KIM = { operator: '김철수' } as const

  async function expectRefusal(act: Promise<unknown>, reason: RefusalReason, text: string): Promise<void> {
    const error = await rejection(act)
    expect(error).toMatchObject({ reason, code: REFUSAL_REASONS[reason] })
    expect(korean(error)).toContain(text)
    expectKorean(korean(error))
  }

  test('dead letters, plans, keys and subscriptions', async () => {
    const { deadLetters, redrive } = outbox
    const { id: plan } = await redrive.plan()
    await expectRefusal(outbox.moveAside('mailer', 'order:7', KIM), 'key-not-blocked', '키 "order:7"')
    await redrive.cancel(plan, KIM)
    await expectRefusal(redrive.apply(plan, KIM), 'plan-cancelled', `계획 ${plan}은(는) 취소`)
    await deadLetters.amend(letterId, {}, KIM)
    await expectRefusal(
      deadLetters.retry(letterId, KIM),
      'letter-amended',
      `데드 레터 ${letterId}은(는) 이미 수정했습니다. 운영자: 김철수.`,
    )
    await expectRefusal(outbox.retire('mailer', KIM), 'subscription-unfinished', '전달이 1건 있습니다')
    await outbox.retire('mailer', { ...KIM, discard: true })
    await database.pool.query(
      `update outbox_dead_letter set resolved = false, resolved_at = null, resolved_by = null, note = null,
              resolved_xid = null where id = $1`,
      [letterId],
    )
    await expectRefusal(deadLetters.retry(letterId, KIM), 'letter-of-retired', '구독 "mailer"')
  })

  test('exports and retention', async () => {
    await expectRefusal(
      outbox.exports.verify('/nowhere/at/all'),
      'export-missing',
      '그런 파일이나 디렉터리가 없습니다 (ENOENT)',
    )
    await expectRefusal(outbox.retention.run(KIM), 'no-retention-policy', 'createOutbox')
  })

  test('a table that cannot be an archive', async () => {
    await database.pool.query('create table kept (event_id text)')
    const archive = { schema: database.schema, table: 'kept' }
    const { retention } = createOutbox({
      store: postgresStore({ pool: database.pool, schema: database.schema }),
      events,
      retention: { policies: [{ name: 'week', stream: '*', keepDays: 7, action: 'archive', archive }] },
    })
    const told = korean(await rejection(retention.prepare()))
    expect(told).toContain(`옵션이 올바르지 않습니다(보관 테이블 ${database.schema}.kept):`)
    expect(told).toContain('- event_id 열의 유형이 text입니다. uuid이어야 합니다')
    expect(told).toContain('- 테이블에 payload 열(jsonb)이 없습니다')
    expectKorean(told.replaceAll('timestamp with time zone', 'timestamptz'))
  })
})
