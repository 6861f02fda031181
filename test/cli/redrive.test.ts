import { afterEach, beforeEach, expect, test } from 'vitest'
import { createOutbox, defineEvents, type Outbox, type Transaction, unchecked } from '../../src/index.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { createTestDatabaseWithTables, type TestDatabase } from '../support/database.ts'
import { at, makeDeadLetter, runCli, startCli } from './support.ts'

const events = defineEvents({
  OrderPlaced: { stream: 'shop.order', aggregate: 'order', schema: unchecked<object>() },
})

let database: TestDatabase
let letterId: string
let outbox: Outbox<typeof events, Transaction>

beforeEach(async () => {
  database = await createTestDatabaseWithTables()
  letterId = await makeDeadLetter(database)
  outbox = createOutbox({
    store: postgresStore({ pool: database.pool, schema: database.schema }),
    events,
  })
})

afterEach(async () => {
  await database.drop()
})

const cli = (...args: readonly string[]): ReturnType<typeof runCli> => runCli([...args, ...at(database)])

const log = async (): Promise<unknown[]> => {
  const { rows } = await database.pool.query<{ line: string }>(
    `select operator || ' ' || action as line from ${database.schema}.outbox_operator_log order by id`,
  )
  return rows.map(({ line }) => line)
}

const plans = async (): Promise<unknown[]> =>
  (await database.pool.query(`select id from ${database.schema}.outbox_redrive_plan`)).rows

/** So many more like this one, which have no deliveries. Returns their ids. */
async function copiesOf(id: string, count: number): Promise<readonly string[]> {
  const { rows } = await database.pool.query<{ id: string }>(
    `insert into ${database.schema}.outbox_dead_letter (subscription, position, event_id, stream, event_type, schema_version,
            aggregate_type, aggregate_id, payload, headers, occurred_at, error_code, error_message, retry_count)
     select subscription, position, gen_random_uuid(), stream, event_type, schema_version, aggregate_type,
            aggregate_id, payload, headers, occurred_at, error_code, error_message, 0
       from ${database.schema}.outbox_dead_letter, generate_series(1, $2) where id = $1
     returning id`,
    [id, count],
  )
  return rows.map((row) => row.id)
}

test('redrive plan refuses ids that no dead letter has, names them, and plans nothing', async () => {
  const ids = `${letterId},999999,888888`
  const english = await cli('redrive', 'plan', '--ids', ids)
  expect(english).toMatchObject({ code: 1, stdout: '' })
  expect(english.stderr).toContain('There is no dead letter 888888, 999999. Nothing was planned.')
  const korean = await cli('redrive', 'plan', '--ids', ids, '--lang', 'ko')
  expect(korean.stderr).toContain(
    '찾을 수 없는 데드 레터가 있습니다: 888888, 999999. 아무것도 계획하지 않았습니다.',
  )
  await expect(outbox.redrive.plan({ ids: [letterId, '999999'] })).rejects.toMatchObject({
    code: 'NOT_FOUND',
    what: 'named dead letter',
    id: '999999',
  })
  expect(await plans()).toEqual([])
  expect(await outbox.redrive.plan({ ids: [letterId] })).toMatchObject({ letters: 1 })
})

test('of many unknown ids it names 20, in both languages', async () => {
  const ids = Array.from({ length: 500 }, (_, n) => String(900_000 + n)).join(',')
  const english = await cli('redrive', 'plan', '--ids', ids)
  expect(english.stderr).toContain('900018, 900019 and 480 more. Nothing was planned.')
  const korean = await cli('redrive', 'plan', '--ids', ids, '--lang', 'ko')
  expect(korean.stderr).toContain('900018, 900019 외 480건. 아무것도 계획하지 않았습니다.')
  expect(korean.stderr).not.toContain('900020')
})

test('redrive plan refuses ids that are decided already, says by whom, and plans nothing', async () => {
  const others = await copiesOf(letterId, 21)
  const ids = [letterId, ...others].join(',')
  await outbox.deadLetters.resolve(letterId, { operator: 'kim' })
  const english = await cli('redrive', 'plan', '--ids', ids)
  expect(english).toMatchObject({ code: 1, stdout: '' })
  expect(english.stderr).toContain(
    `Dead letters that were named are already decided: ${letterId} by kim. Nothing was planned.`,
  )
  const korean = await cli('redrive', 'plan', '--ids', ids, '--lang', 'ko')
  expect(korean.stderr).toContain(
    `이미 결정된 것이 1건 있습니다(괄호 안은 운영자): ${letterId} (kim). 아무것도 계획하지 않았습니다.`,
  )
  for (const id of others) await outbox.deadLetters.resolve(id, { operator: 'lee' })
  await expect(outbox.redrive.plan({ ids: ids.split(',') })).rejects.toMatchObject({
    code: 'INVALID_STATE',
    reason: 'letters-decided',
    message: expect.stringContaining(`${others[18]} by lee and 2 more. Nothing was planned.`),
    data: {
      count: '22',
      letters: expect.stringMatching(new RegExp(`, ${others[18]} \\(lee\\), \\.\\.\\.$`)),
    },
  })
  expect(await plans()).toEqual([])
})

test('redrive plan, apply and status deliver dead letters again', async () => {
  const planned = await cli(
    'redrive',
    'plan',
    '--subscription',
    'mailer',
    '--error',
    'CARD_REFUSED',
    '--json',
  )
  expect(planned.code).toBe(0)
  const { id } = JSON.parse(planned.stdout) as { id: string }
  expect(JSON.parse(planned.stdout)).toMatchObject({
    letters: 1,
    reordered: 0,
    unreachable: 0,
    subscriptions: [{ subscription: 'mailer', letters: 1, reordered: 0 }],
    eventTypes: [{ eventType: 'OrderPlaced', letters: 1, reordered: 0 }],
    keys: [],
  })
  await using worker = outbox.worker([
    outbox.subscription('mailer', { on: { OrderPlaced: () => undefined } }),
  ])
  await worker.active()
  const applied = await cli(
    'redrive',
    'apply',
    id,
    '--operator',
    'kim',
    '--rate',
    '50/s',
    '--stop-share',
    '20%',
  )
  expect(applied.code).toBe(0)
  expect(applied.stdout).toContain(`Plan ${id}: done`)
  expect(applied.stdout).toMatch(/^succeeded +1$/m)
  const status = await cli('redrive', 'status', id, '--json')
  expect(JSON.parse(status.stdout)).toMatchObject({
    id,
    state: 'done',
    succeeded: 1,
    failedAgain: 0,
    oneOnItsWay: null,
    appliedBy: 'kim',
  })
  expect(await log()).toEqual(['kim retry', 'kim redrive'])
})

test('redrive speaks Korean', async () => {
  const plan = await cli('redrive', 'plan', '--lang', 'ko')
  expect(plan.stdout).toContain('다시 전달할 데드 레터 1건')
  expect(plan.stdout).toContain('mailer')
  expect(plan.stderr).toContain('commitpost redrive apply 1 --operator NAME')
  const cancelled = await cli('redrive', 'cancel', '1', '--operator', '김철수', '--lang', 'ko')
  expect(cancelled.stdout).toContain('재처리 계획 1을(를) 취소했습니다 (운영자: 김철수)')
  const status = await cli('redrive', 'status', '1', '--lang', 'ko')
  expect(status.stdout).toContain('재처리 계획 1: 취소됨')
})

test('redrive apply that is interrupted says how to go on, and leaves the plan as it is', async () => {
  await cli('redrive', 'plan')
  const running = startCli(['redrive', 'apply', '1', '--operator', 'kim', ...at(database)])
  await running.line('on their way 1')
  running.signal('SIGINT')
  const { code, stderr } = await running.ended
  expect(code).toBe(1)
  expect(stderr).toContain('commitpost redrive apply 1 --operator NAME')
  expect(JSON.parse((await cli('redrive', 'status', '1', '--json')).stdout)).toMatchObject({
    state: 'applying',
    onTheirWay: 1,
    oneOnItsWay: { subscription: 'mailer', eventId: expect.stringMatching(/^[0-9a-f-]{36}$/) },
  })
})

test.each([
  { args: ['redrive', 'apply', '1'], says: '--operator is missing' },
  { args: ['redrive', 'cancel', '1'], says: '--operator is missing' },
  { args: ['redrive', 'apply', 'x', '--operator', 'kim'], says: 'must be a number as the list shows it' },
  { args: ['redrive', 'apply', '1', '--operator', 'kim', '--stop-share', '200%'], says: 'must be a share' },
  {
    args: ['redrive', 'apply', '1', '--operator', 'kim', '--rate', 'fast'],
    says: 'must be a number per second',
  },
  { args: ['redrive', 'plan', '--ids', '1,x'], says: 'must be numbers as the list shows them' },
  { args: ['redrive', 'plan', '--failed-from', 'yesterday'], says: 'must be a time such as' },
  { args: ['move-aside', 'mailer'], says: 'is missing' },
  { args: ['move-aside', 'mailer', 'order:7'], says: '--operator is missing' },
])('$args is refused, and nothing changes', async ({ args, says }) => {
  const { code, stdout, stderr } = await cli(...args)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(says)
  expect(await log()).toEqual([])
})

test('what matches nothing or does not exist is named, and the program ends with 1', async () => {
  const nothing = await cli('redrive', 'plan', '--failed-to', '2001-01-01', '--json')
  expect(nothing.code).toBe(1)
  expect(JSON.parse(nothing.stderr)).toMatchObject({ error: { code: 'NOT_FOUND' } })
  expect((await cli('redrive', 'plan', '--failed-to', '2001-01-01', '--lang', 'ko')).stderr).toBe(
    '오류 (NOT_FOUND): 조건에 맞으면서 다시 전달할 수 있는 데드 레터가 없습니다. 필터가 너무 좁거나, 구독이 종료되었을 수 있습니다.\n',
  )
  expect((await cli('redrive', 'plan', '--ids', letterId, '--failed-from', '2001-01-01T00:00Z')).code).toBe(0)
  const missing = await cli('redrive', 'status', '404')
  expect(missing.stderr).toContain('There is no plan "404"')
  const free = await cli('move-aside', 'mailer', 'order:7', '--operator', 'kim')
  expect(free.code).toBe(1)
  expect(free.stderr).toContain('is not blocked by a dead letter')
})

test('move-aside frees a blocked key and says how many events are dead letters now', async () => {
  const ledger = outbox.subscription('ledger', {
    order: 'aggregate',
    maxAttempts: 1,
    on: {
      OrderPlaced: () => {
        throw new Error('closed')
      },
    },
  })
  let tell: () => void = () => undefined
  const died = new Promise<void>((resolve) => {
    tell = resolve
  })
  const worker = outbox.worker([ledger], {
    observers: [({ kind }) => (kind === 'dead' ? tell() : undefined)],
  })
  await worker.active()
  const place = (): Promise<unknown> =>
    outbox.inTransaction(database.pool, (tx) =>
      outbox.publish(tx, 'OrderPlaced', { aggregateId: 9, payload: {} }),
    )
  await place()
  await died
  await worker.stop()
  for (const _ of [1, 2]) await place()
  const moved = await cli(
    'move-aside',
    'ledger',
    'order:9',
    '--operator',
    'kim',
    '--note',
    'poison',
    '--json',
  )
  expect(moved.code).toBe(0)
  expect(JSON.parse(moved.stdout)).toEqual({
    action: 'move-aside',
    subscription: 'ledger',
    key: 'order:9',
    moved: 2,
    free: true,
    operator: 'kim',
    note: 'poison',
  })
  const plan = await cli('redrive', 'plan', '--key', 'order:9')
  expect(plan.stdout).toMatch(/^ledger +order:9 +3 +0$/m)
})
