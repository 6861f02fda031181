import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestDatabaseWithTables, type TestDatabase } from '../support/database.ts'
import { at, hostilePayload, makeDeadLetter, runCli } from './support.ts'

let database: TestDatabase
let id: string

beforeEach(async () => {
  database = await createTestDatabaseWithTables()
  id = await makeDeadLetter(database)
})

afterEach(async () => {
  await database.drop()
})

function cli(...args: readonly string[]): ReturnType<typeof runCli> {
  return runCli([...args, ...at(database)])
}

async function operatorLog(): Promise<unknown[]> {
  const { rows } = await database.pool.query(
    `select operator, action, note from ${database.schema}.outbox_operator_log order by id`,
  )
  return rows
}

async function deliveryStates(): Promise<string[]> {
  const { rows } = await database.pool.query(
    `select status from ${database.schema}.outbox_delivery order by id`,
  )
  return rows.map((row: { status: string }) => row.status)
}

test('status shows every subscription with its counts', async () => {
  const { code, stdout } = await cli('status', '--json')
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toEqual({
    schema: database.schema,
    events: 1,
    subscriptions: [
      {
        name: 'mailer',
        state: 'active',
        paused: false,
        orderBy: 'none',
        counts: { PENDING: 0, PROCESSING: 0, DONE: 0, DEAD: 1 },
        pendingCapped: false,
        retrying: 0,
        oldestPendingSeconds: null,
        unresolvedDeadLetters: 1,
        waitsFor: null,
      },
    ],
  })
})

test('status as a table lines up in Korean', async () => {
  const { stdout, stderr } = await cli('status', '--lang', 'ko')
  expect(stdout.split('\n')).toEqual([
    '이벤트: 1건',
    '구독    상태  순서  대기 중  처리 중  재시도 예정  완료  데드  가장 오래된 대기  미해결',
    'mailer  활성  -           0        0            0     0     1                 -       1',
    '',
  ])
  expect(stderr).toContain('해결되지 않은 데드 레터: 1건')
})

test('dlq list and show tell everything about a dead letter, and let nothing drive the terminal', async () => {
  const list = await cli('dlq', 'list', '--json')
  expect(JSON.parse(list.stdout)).toMatchObject({
    deadLetters: [
      { id, subscription: 'mailer', eventType: 'OrderPlaced', errorCode: 'CARD_REFUSED', resolved: false },
    ],
    total: 1,
    nextBefore: null,
  })
  expect(list.stdout).not.toContain('payload')

  const reveal = ['--reveal', '--operator', 'kim'] as const
  const shown = await cli('dlq', 'show', id, '--json', ...reveal)
  expect(JSON.parse(shown.stdout)).toMatchObject({
    id,
    payload: hostilePayload,
    attemptHistory: [{ attempt: 1 }],
  })

  const printed = await cli('dlq', 'show', id, ...reveal)
  expect(printed.stdout).toContain('CARD_REFUSED: NonRetryableError: card refused, ask password=***')
  expect(printed.stdout).toContain('한글')
  for (const { stdout } of [list, shown, printed]) {
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
    expect(stdout).not.toContain('hunter2')
  }
  expect(printed.stderr).toContain(`commitpost dlq retry ${id} --operator NAME`)
})

test('dlq list filters', async () => {
  const count = async (...filter: readonly string[]): Promise<number> => {
    const { stdout } = await cli('dlq', 'list', '--json', ...filter)
    return (JSON.parse(stdout) as { deadLetters: unknown[] }).deadLetters.length
  }
  expect(await count('--subscription', 'mailer', '--type', 'OrderPlaced', '--error', 'CARD_REFUSED')).toBe(1)
  expect(await count('--subscription', '(none)')).toBe(0)
  expect(await count('--type', 'OrderPaid')).toBe(0)
  expect(await count('--error', 'TIMEOUT')).toBe(0)
  expect(await count('--before', id)).toBe(0)
  expect(await count('--resolved')).toBe(0)
  expect((await cli('dlq', 'list', '--resolved')).stderr).toContain('There are no such dead letters.')
})

test('dlq retry delivers again and records who and why', async () => {
  const { eventId } = JSON.parse((await cli('dlq', 'show', id, '--json')).stdout) as { eventId: string }
  const retried = await cli('dlq', 'retry', id, '--operator', '김철수', '--note', 'card replaced')
  expect(retried).toMatchObject({
    code: 0,
    stdout: `Dead letter ${id}: its event goes to "mailer" again. Recorded for 김철수.\n`,
    stderr: `Where it stands, and what it waits for: commitpost why ${eventId}\n`,
  })
  expect(await deliveryStates()).toEqual(['PENDING'])
  expect(await operatorLog()).toEqual([{ operator: '김철수', action: 'retry', note: 'card replaced' }])

  const resolved = await cli('dlq', 'list', '--all')
  expect(resolved.stdout).toContain('retried by 김철수')
  const again = await cli('dlq', 'retry', id, '--operator', 'kim', '--json')
  expect(again.code).toBe(1)
  expect(JSON.parse(again.stderr)).toMatchObject({ error: { code: 'INVALID_STATE' } })
})

test('dlq resolve settles by hand and records who and how', async () => {
  const { code, stdout } = await cli(
    'dlq',
    'resolve',
    id,
    '--operator',
    'kim',
    '--note',
    'refunded by hand',
    '--json',
  )
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toEqual({ action: 'resolve', id, operator: 'kim', note: 'refunded by hand' })
  expect(await deliveryStates()).toEqual(['DEAD'])
  expect(await operatorLog()).toEqual([{ operator: 'kim', action: 'resolve', note: 'refunded by hand' }])
})

test.each([
  { args: ['dlq', 'retry', 'ID'], says: '--operator is missing' },
  { args: ['dlq', 'retry', 'ID', '--operator', '  '], says: '--operator needs a value' },
  { args: ['dlq', 'resolve', 'ID', '--operator', 'kim'], says: '--note is missing' },
  { args: ['dlq', 'resolve', 'ID', '--note', 'x'], says: '--operator is missing' },
  { args: ['pause', 'mailer'], says: '--operator is missing' },
  { args: ['resume', 'mailer'], says: '--operator is missing' },
  { args: ['retire', 'mailer'], says: '--operator is missing' },
])('$args is refused, and nothing changes: $says', async ({ args, says }) => {
  const { code, stdout, stderr } = await cli(...args.map((arg) => (arg === 'ID' ? id : arg)))
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(says)
  expect(await deliveryStates()).toEqual(['DEAD'])
  expect(await operatorLog()).toEqual([])
})

test('pause and resume hold and release a subscription', async () => {
  expect(await cli('pause', 'mailer', '--operator', 'kim')).toMatchObject({ code: 0 })
  expect((await cli('status')).stdout).toMatch(/^mailer +active, paused /m)
  expect(await cli('resume', 'mailer', '--operator', 'lee', '--lang', 'ko')).toMatchObject({
    code: 0,
    stdout: '"mailer" 구독을 재개했습니다 (운영자: lee).\n',
  })
  expect(await operatorLog()).toMatchObject([
    { operator: 'kim', action: 'pause' },
    { operator: 'lee', action: 'resume' },
  ])
})

test('pause takes a note', async () => {
  const { code, stdout } = await cli('pause', 'mailer', '--operator', 'kim', '--note', 'too many', '--json')
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toEqual({
    subscription: 'mailer',
    paused: true,
    operator: 'kim',
    note: 'too many',
  })
  expect(await operatorLog()).toEqual([{ operator: 'kim', action: 'pause', note: 'too many' }])
})

test('retire ends a subscription, says what became of its deliveries, and records who and why', async () => {
  await cli('dlq', 'retry', id, '--operator', 'kim')
  const refused = await cli('retire', 'mailer', '--operator', 'kim')
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(refused.stderr).toContain('has open deliveries: 1.')
  expect(await deliveryStates()).toEqual(['PENDING'])

  const { code, stdout } = await cli(
    'retire',
    'mailer',
    '--operator',
    'kim',
    '--note',
    'gone',
    '--discard',
    '--json',
  )
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toEqual({
    action: 'retire',
    subscription: 'mailer',
    discarded: 1,
    unresolvedDeadLetters: 0,
    locked: 0,
    operator: 'kim',
    note: 'gone',
  })
  expect(await deliveryStates()).toEqual(['DEAD'])
  expect((await cli('status')).stdout).toMatch(/^mailer +retired /m)
  expect((await operatorLog()).at(-1)).toEqual({ operator: 'kim', action: 'retire', note: 'gone' })
})

test('retire in Korean says how many dead letters wait still', async () => {
  const { code, stdout, stderr } = await cli('retire', 'mailer', '--operator', '김철수', '--lang', 'ko')
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: '"mailer" 구독을 종료했습니다 (운영자: 김철수). 끝나지 않아 해결된 데드 레터로 남긴 전달: 0건\n',
  })
  expect(stderr).toContain('결정을 기다리는 데드 레터가 1건')
})

test.each([
  ['en', 'Deliveries of it that somebody has locked: 1.'],
  ['ko', '다른 트랜잭션이 잠근 전달이 1건 있습니다.'],
])('retire says what somebody has locked: %s', async (lang, told) => {
  const { pool, schema } = database
  await pool.query(
    `insert into ${schema}.outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
     values ('shop.order', 'OrderPlaced', 'order', '2', '{}')`,
  )
  const client = await pool.connect()
  await client.query(`begin; select 1 from ${schema}.outbox_delivery where status = 'PENDING' for update`)
  const { code, stderr } = await cli('retire', 'mailer', '--operator', 'kim', '--discard', '--lang', lang)
  await client.query('rollback')
  client.release()
  expect(code).toBe(0)
  expect(stderr).toContain(told)
})

test('what does not exist is named, and the program ends with 1', async () => {
  const letter = await cli('dlq', 'show', '999999', '--lang', 'ko')
  expect(letter).toMatchObject({ code: 1, stdout: '' })
  expect(letter.stderr).toBe(
    '오류 (NOT_FOUND): 데드 레터 "999999"을(를) 찾을 수 없습니다. 잘못 입력했거나, 이 데이터베이스와 스키마에 없습니다.\n',
  )
  const subscription = await cli('pause', 'nobody', '--operator', 'kim')
  expect(subscription.code).toBe(1)
  expect(subscription.stderr).toContain('There is no subscription "nobody"')
})
