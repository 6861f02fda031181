import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabaseWithTables, type TestDatabase } from '../support/database.ts'
import { at, type CliResult, makeDeadLetter, runCli } from './support.ts'

let database: TestDatabase
let eventId: string

/** One event of a subscription "mailer" that failed for good. */
beforeEach(async () => {
  database = await createTestDatabaseWithTables()
  await makeDeadLetter(database)
  eventId = (await rows<{ event_id: string }>('select event_id from outbox_event'))[0]?.event_id ?? ''
})
afterEach(async () => {
  await database.drop()
})

async function rows<Row>(sql: string): Promise<readonly Row[]> {
  return (await database.pool.query(sql)).rows as Row[]
}

async function sabotage(sql: string): Promise<void> {
  await database.pool.query(`begin; set local session_replication_role = replica; ${sql}; commit`)
}

const cli = (...args: readonly string[]): Promise<CliResult> => runCli([...args, ...at(database)])

describe('verify', () => {
  test('prints the equation of every subscription, and ends with 0 when it holds', async () => {
    const { code, stdout, stderr } = await cli('verify')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^SUBSCRIPTION +MATCHED +=\sDONE +\+ PENDING +\+ PROCESSING +\+ DEAD +\+ ARCHIVED/)
    expect(stdout).toMatch(/^mailer +1 +0 +0 +0 +1 +0 +✓$/m)
    expect(stderr).toContain('It holds, as of ')
  })

  test('names what is lost, and ends with 3', async () => {
    await sabotage('delete from outbox_delivery')
    const { code, stdout, stderr } = await cli('verify', '--lang', 'ko')
    expect(code).toBe(3)
    expect(stdout).toMatch(/^mailer +1 +0 +0 +0 +0 +0 +✗$/m)
    expect(stdout).toContain(`mailer: 있어야 하는데 전달이 없는 이벤트 1건\n  ${eventId}\n`)
    expect(stderr).toContain('등식이 성립하지 않습니다')
    const json = await cli('verify', '--json', '--limit', '0', '--subscription', 'mailer', '--since', '24h')
    expect(json.code).toBe(3)
    expect(JSON.parse(json.stdout)).toMatchObject({
      schema: database.schema,
      holds: false,
      until: null,
      subscriptions: [
        { subscription: 'mailer', matched: 1, archived: 0, missing: { count: 1, eventIds: [] } },
      ],
    })
    expect((await cli('verify', '--limit', '0')).stdout).toContain(
      '… and 1 more: name more of them with --limit',
    )
  })

  test('shows a subscription whose row was deleted by force, and says what that means', async () => {
    await sabotage('delete from outbox_subscription')
    const { code, stdout } = await cli('verify')
    expect(code).toBe(3)
    expect(stdout).toMatch(/^#1 \(deleted\) +1 +0 +0 +0 +1 +0 +✗$/m)
    expect(stdout).toContain('\nSubscription #1 was deleted by force.')
    expect(stdout).toContain(`#1: deliveries in a state that they cannot have come to: 1\n  ${eventId}\n`)
    const korean = await cli('verify', '--lang', 'ko')
    expect(korean.stdout).toMatch(/^#1 \(삭제됨\) +1 +0 +0 +0 +1 +0 +✗$/m)
    expect(korean.stdout).toContain('구독 #1의 행이 강제로 삭제되었습니다.')
  })

  test('looks at a window', async () => {
    await sabotage('delete from outbox_delivery')
    expect((await cli('verify', '--until', '2020-01-01')).code).toBe(0)
    expect((await cli('verify', '--since', '2020-01-01T00:00Z')).code).toBe(3)
  })

  test.each([
    [['--since', 'yesterday'], '--since must be a time such as 2026-01-31'],
    [['--until', '2026-13-01'], '--until must be a time such as 2026-01-31'],
    [['--since', '1h', '--until', '2h'], '--until must be later than --since'],
    [['--limit', '10001'], '--limit must be a whole number from 0 to 10000'],
  ])('is refused with %s', async (args, says) => {
    const { code, stdout, stderr } = await cli('verify', ...args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(says)
  })

  test('of a subscription that does not exist ends with 1', async () => {
    const { code, stderr } = await cli('verify', '--subscription', 'nobody')
    expect(code).toBe(1)
    expect(stderr).toContain('There is no subscription "nobody"')
  })
})

describe('why', () => {
  test('says what stands in the way of an event, without passwords', async () => {
    const { code, stdout } = await cli('why', eventId)
    expect(code).toBe(0)
    expect(stdout).toContain(`Event ${eventId}: OrderPlaced of order:7 in shop.order, published at `)
    expect(stdout).toMatch(
      /^mailer {2}Failed for good: dead letter \d+, CARD_REFUSED: NonRetryableError: card refused, ask password=\*\*\*/m,
    )
    const json = await cli('why', eventId.toUpperCase(), '--json')
    expect(json.stdout).not.toContain('hunter2')
    expect(JSON.parse(json.stdout)).toMatchObject({
      eventId,
      unmatched: false,
      subscriptions: [{ subscription: 'mailer', reason: { kind: 'dead', errorCode: 'CARD_REFUSED' } }],
    })
  })

  test('says that nobody takes it, in Korean', async () => {
    await sabotage(
      `update outbox_subscription set event_types = array['Other'], stream_like = null, streams = null`,
    )
    await sabotage('delete from outbox_delivery')
    const { code, stdout } = await cli('why', eventId, '--lang', 'ko')
    expect(code).toBe(0)
    expect(stdout).toContain('이 스트림과 유형의 이벤트를 받는 구독이 없습니다.')
    expect(stdout).toContain('mailer  이 구독의 대상이 아닙니다.')
  })

  test('of an event that was archived says where it is, and who had got it', async () => {
    await sabotage(`
      insert into outbox_archive (schema_name, table_name) values ('audit', 'events');
      insert into outbox_archived (event_id, position, archive_id, subscription_ids, created_at)
        select e.event_id, e.id, 1, array(select id from outbox_subscription), e.created_at from outbox_event e;
      delete from outbox_dead_letter; delete from outbox_event`)
    const { code, stdout } = await cli('why', eventId)
    expect(code).toBe(0)
    expect(stdout).toMatch(
      new RegExp(
        `^Event ${eventId}, published at .+, was archived after it had been delivered to mailer\\. It is in audit\\.events\\.\n$`,
      ),
    )
    await sabotage(`update outbox_archived set archive_id = null, subscription_ids = '{}'`)
    const purged = await cli('why', eventId, '--lang', 'ko')
    expect(purged.code).toBe(0)
    expect(purged.stdout).toMatch(
      /받는 구독이 없어 보관되었습니다\. 그 뒤 보관 테이블에서 삭제되었습니다\.\n$/,
    )
  })

  test('of an unknown id ends with 1 and says what that can mean', async () => {
    const { code, stdout } = await cli('why', '00000000-0000-4000-8000-000000000000')
    expect(code).toBe(1)
    expect(stdout).toContain('its transaction was rolled back or has not committed yet')
    await sabotage('delete from outbox_event')
    const gone = await cli('why', eventId)
    expect(gone.code).toBe(1)
    expect(gone.stdout).toMatch(/^Dead letter \d+ of subscription "mailer" keeps a copy of it/m)
  })

  test.each([
    [['why'], '<event> is missing'],
    [['why', '17'], '<event> must be the id of an event (a UUID), not "17"'],
  ])('%s is refused', async (args, says) => {
    const { code, stderr } = await cli(...args)
    expect(code).toBe(2)
    expect(stderr).toContain(says)
  })
})

describe('doctor', () => {
  test('says what is wrong and what to do, and ends with 3 when something is', async () => {
    await database.pool.query('alter table outbox_event disable trigger outbox_fan_out')
    const { code, stdout, stderr } = await cli('doctor')
    expect(code).toBe(3)
    expect(stdout).toMatch(/^ok +schema +The tables are at version \d+/m)
    expect(stdout).toMatch(/^PROBLEM +indexes +The trigger outbox_fan_out is disabled\.\n +Switch it on/m)
    expect(stdout).toMatch(/^warning +workers +No live worker serves subscription mailer\./m)
    expect(stderr).toMatch(/^Problems: \d+, warnings: \d+\.$/m)
    const korean = await cli('doctor', '--lang', 'ko')
    expect(korean.stdout).toMatch(/^문제 +인덱스 +트리거 outbox_fan_out이\(가\) 꺼져 있습니다\./m)
  })

  test('works where there are no tables yet', async () => {
    const { code, stdout } = await runCli([
      'doctor',
      '--json',
      '--database',
      database.url,
      '--schema',
      'nowhere',
    ])
    expect(code).toBe(3)
    const { severity, findings } = JSON.parse(stdout) as { severity: string; findings: readonly unknown[] }
    expect(severity).toBe('problem')
    expect(findings[0]).toMatchObject({
      check: 'schema',
      severity: 'problem',
      code: 'SCHEMA_NOT_CURRENT',
      facts: { state: 'missing' },
      advice: 'Run: commitpost migrate up',
    })
  })

  test('compares the types of events with the catalogue of a config file', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'commitpost-doctor-'))
    const config = (storedAs: string): string =>
      `export default {
         outbox: { worker() {}, events: {
           events: [{ storedAs: '${storedAs}' }], find() {}, findStored() {}, prepare() {}, read() {} } },
         subscriptions: [{}] }`
    try {
      await writeFile(join(directory, 'all.mjs'), config('OrderPlaced'))
      await writeFile(join(directory, 'other.mjs'), config('Other'))
      const known = await cli('doctor', '--config', join(directory, 'all.mjs'))
      expect(known.stdout).toContain('The catalogue knows the types of the newest events.')
      const unknown = await cli('doctor', '--config', join(directory, 'other.mjs'))
      expect(unknown.stdout).toContain('among the newest events: OrderPlaced (shop.order, 1).')
      expect((await cli('doctor')).stdout).toContain('No catalogue was given')
      await writeFile(
        join(directory, 'bare.mjs'),
        'export default { outbox: { worker() {} }, subscriptions: [{}] }',
      )
      const bare = await cli('doctor', '--config', join(directory, 'bare.mjs'))
      expect(bare).toMatchObject({ code: 1, stdout: '' })
      expect(bare.stderr).toContain('its outbox has no catalogue: it must be what createOutbox made')
    } finally {
      await rm(directory, { recursive: true })
    }
  })
})

describe('audit verify', () => {
  test('follows the chain, and names the first broken link', async () => {
    await cli('pause', 'mailer', '--operator', 'kim')
    await cli('resume', 'mailer', '--operator', '이영희', '--note', 'provider is back')
    const { code, stdout } = await cli('audit', 'verify')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^The operator log holds: 2 entries, .*\nHash of the last entry: [0-9a-f]{64}\n/)
    expect(stdout).toMatch(/\nThe chain of exports holds: 0 exports\.\nHash of the last export: 0{64}\n$/)
    await sabotage(`update outbox_operator_log set operator = 'lee' where action = 'pause'`)
    const broken = await cli('audit', 'verify', '--lang', 'ko')
    expect(broken.code).toBe(3)
    expect(broken.stdout).toMatch(/^운영자 기록이 1번 항목\(id \d+\)에서 끊어졌습니다: 내용이/)
    const json = await cli('audit', 'verify', '--json')
    expect(JSON.parse(json.stdout)).toEqual({
      schema: database.schema,
      holds: false,
      entries: 2,
      hash: '0'.repeat(64),
      broken: { entry: '1', id: expect.any(String), problem: 'changed' },
      exports: { holds: true, entries: 0, hash: '0'.repeat(64), broken: null },
    })
  })
})
