import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabaseWithTables, type TestDatabase } from '../support/database.ts'
import { compiledDirectory } from '../support/program.ts'
import { at, hostilePayload, makeDeadLetter, runCli } from './support.ts'

let database: TestDatabase
let directory: string
let id: string

beforeEach(async () => {
  database = await createTestDatabaseWithTables()
  directory = await mkdtemp(join(tmpdir(), 'commitpost-letters-'))
  id = await makeDeadLetter(database)
})

afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
  await database.drop()
})

function cli(...args: readonly string[]): ReturnType<typeof runCli> {
  return runCli([...args, ...at(database)], { cwd: directory })
}

async function json<Value>(...args: readonly string[]): Promise<Value> {
  const { code, stdout, stderr } = await cli(...args, '--json')
  expect({ code, stderr: stderr.includes('"error"') ? stderr : '' }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout) as Value
}

async function rows(sql: string): Promise<unknown[]> {
  return (await database.pool.query(sql)).rows
}

const WORKED = ', "at": "2026-01-01T00:00:00Z", "worker": "w", "durationMs": 1, "code": "X", "message": "no"}'

/** Another dead letter like the first. */
async function copyLetter(): Promise<void> {
  await database.pool.query(`
    insert into ${database.schema}.outbox_dead_letter (subscription, position, event_id, stream, event_type,
           schema_version, aggregate_type, aggregate_id, payload, headers, occurred_at, error_code, error_message,
           retry_count)
    select subscription, position + 1, gen_random_uuid(), stream, event_type, schema_version, aggregate_type,
           aggregate_id, payload, headers, occurred_at, error_code, error_message, 0
      from ${database.schema}.outbox_dead_letter`)
}

const compiled = (path: string): string => JSON.stringify(pathToFileURL(join(compiledDirectory, path)).href)

/** A config whose catalogue wants a text in the payload, and hides it. */
async function writeConfig(): Promise<void> {
  const config = `
    import { createOutbox } from ${compiled('src/outbox.js')}
    import { defineEvents } from ${compiled('src/event/define-events.js')}
    import { postgresStore } from ${compiled('src/store/postgres/postgres-store.js')}
    const validate = (value) =>
      typeof value?.text === 'string' ? { value } : { issues: [{ message: 'must be text', path: ['text'] }] }
    const schema = { '~standard': { version: 1, vendor: 'test', validate } }
    const events = defineEvents({ OrderPlaced: { stream: 'shop.order', aggregate: 'order', schema, sensitive: ['text'] } })
    const outbox = createOutbox({ store: postgresStore({ pool: { connect() {} } }), events })
    export default { outbox, subscriptions: [outbox.subscription('mailer', { on: { OrderPlaced() {} } })] }`
  await writeFile(join(directory, 'config.mjs'), config)
}

describe('dlq list', () => {
  test('D3 narrows by every filter', async () => {
    const count = async (...filter: readonly string[]): Promise<number> =>
      (await json<{ deadLetters: unknown[] }>('dlq', 'list', ...filter)).deadLetters.length
    const matching = ['--stream', 'shop.order', '--reason', 'NON_RETRYABLE', '--text', 'CARD refused']
    expect(
      await count(...matching, '--aggregate-type', 'order', '--aggregate-id', '7', '--since', '1h'),
    ).toBe(1)
    expect(await count('--stream', 'other')).toBe(0)
    expect(await count('--text', 'c_rd')).toBe(0)
    expect(await count('--aggregate-id', '8')).toBe(0)
    expect(await count('--until', '2026-01-01')).toBe(0)
    expect(await count('--reason', 'CRASHED')).toBe(0)
  })

  test('L11 records as revealed what it shows, and pages on', async () => {
    await copyLetter()
    const page = ['dlq', 'list', '--reveal', '--operator', 'kim', '--limit', '1'] as const
    const first = await json<{ deadLetters: { id: string }[]; nextBefore: string | null }>(...page)
    expect(first.deadLetters).toHaveLength(1)
    expect(first.nextBefore).toBe(first.deadLetters[0]?.id)
    const second = await json(...page, '--before', first.nextBefore ?? '')
    expect(second).toMatchObject({ deadLetters: [{ id }], total: 2, nextBefore: null })
    const logged = `select target, affected::int from ${database.schema}.outbox_operator_log order by entry`
    expect(await rows(logged)).toEqual([
      { target: { list: { limit: 1, resolved: false } }, affected: 1 },
      { target: { list: { limit: 1, resolved: false, before: first.nextBefore } }, affected: 1 },
    ])
  })

  test.each([
    ['NON_RETRYABLE', 'it failed', '[{"attempt": 1}]', 1],
    ['MOVED_ASIDE', 'Not delivered: its ordering key was blocked', '[]', 0],
    ['MOVED_ASIDE', 'Not delivered: its ordering key was blocked', '[{"attempt": 1}]', 1],
    ['MOVED_ASIDE', 'Not delivered: it was retried by a person before', '[{"attempt": 5}]', 0],
    ['NO_SUBSCRIPTION', 'No subscription takes events', '[]', 0],
    ['SUBSCRIPTION_RETIRED', 'Not delivered: its subscription was retired.', '[]', 0],
    ['SUBSCRIPTION_RETIRED', 'Its subscription was retired while worker w had it in hand', '[]', 1],
  ])(
    'of %s (%s) with the history %s it shows the attempts: %d',
    async (reason, message, history, attempts) => {
      await database.pool.query(
        `update ${database.schema}.outbox_dead_letter set reason = $1, error_code = 'X', error_message = $2,
         attempt_history = $3`,
        [reason, message, history.replace('}', WORKED)],
      )
      expect((await cli('dlq', 'list')).stdout).toMatch(new RegExp(` order:7 +${attempts}  X: `))
      expect((await cli('dlq', 'show', id)).stdout).toMatch(new RegExp(`^Attempts +${attempts}$`, 'm'))
    },
  )
})

describe('dlq group', () => {
  test('D8 U10 a masked group is still told by what its errors have in common', async () => {
    await writeConfig()
    await database.pool.query(
      `update ${database.schema}.outbox_dead_letter set error_message = 'order 17 said ' || (payload ->> 'text') || ' at 3 s'`,
    )
    expect(await json('dlq', 'group', '--config', 'config.mjs')).toMatchObject({
      groups: [{ pattern: 'order <n> said *** at <n> s' }],
    })
  })

  test('D3 D8 counts by what the errors have in common', async () => {
    expect(await json('dlq', 'group')).toMatchObject({
      groups: [{ errorCode: 'CARD_REFUSED', count: 1, sampleId: id, subscriptions: ['mailer'] }],
    })
    const { stdout } = await cli('dlq', 'group')
    expect(stdout).toMatch(/^COUNT +FIRST +LAST +SUBSCRIPTIONS/)
    expect(stdout).toContain('card refused, ask password=***')
    expect(stdout).not.toContain('hunter2')
    expect((await cli('dlq', 'group', '--lang', 'ko')).stdout).toContain('건수')
    expect((await cli('dlq', 'group', '--type', 'None')).stderr).toContain('There are no such dead letters.')
  })
})

describe('dlq show', () => {
  test('D2 tells why it is dead, in both languages', async () => {
    expect((await cli('dlq', 'show', id)).stdout).toContain(
      'Reason        NON_RETRYABLE: The failure was one',
    )
    expect((await cli('dlq', 'show', id, '--lang', 'ko')).stdout).toContain('NON_RETRYABLE: 다시 시도해도')
  })
})

describe('dlq blocked', () => {
  test('D3 lists keys that wait behind a dead letter', async () => {
    expect(await json('dlq', 'blocked')).toEqual({ blockedKeys: [], nextAfter: null })
    expect((await cli('dlq', 'blocked')).stderr).toContain('No key is blocked')
    const { schema, pool } = database
    await pool.query(`
      update ${schema}.outbox_subscription set order_by = 'aggregate', lanes = 1;
      insert into ${schema}.outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
        values ('shop.order', 'OrderPlaced', 'order', '9', '{}'), ('shop.order', 'OrderPlaced', 'order', '9', '{}')`)
    await pool.query(`
      update ${schema}.outbox_delivery set status = 'PROCESSING', fresh = false, locked_by = 'w', locked_until = now(), lease_token = 1
       where id = (select min(id) from ${schema}.outbox_delivery where ordering_key = 'order:9')`)
    await pool.query(`
      with dead as (update ${schema}.outbox_delivery set status = 'DEAD', fresh = false, held = true, locked_by = null,
        locked_until = null, lease_token = null, last_error_code = 'X' where status = 'PROCESSING' returning *)
      insert into ${schema}.outbox_dead_letter (subscription, subscription_id, lane, position, event_id, stream, event_type,
        schema_version, aggregate_type, aggregate_id, ordering_key, payload, headers, occurred_at, error_code,
        error_message, retry_count)
      select 'mailer', subscription_id, lane, id, event_id, 's', 'OrderPlaced', 1, 'order', '9', ordering_key, '{}', '{}',
        now(), 'X', 'no', 0 from dead`)
    expect(await json('dlq', 'blocked', '--subscription', 'mailer')).toMatchObject({
      blockedKeys: [{ orderingKey: 'order:9', waiting: 1, waitingIsExact: true, errorCode: 'X' }],
      nextAfter: null,
    })
    expect((await cli('dlq', 'blocked')).stdout).toMatch(/^mailer +order:9 +\d+ +OrderPlaced .* 1 +X: no$/m)
    expect((await cli('dlq', 'blocked', '--lang', 'ko')).stdout).toContain('막힌 시간')
  })
})

describe('dlq export', () => {
  test('U10 without a catalogue nothing of payloads is shown, unless somebody asks for it by name', async () => {
    await cli('dlq', 'export', '--out', 'letters.ndjson')
    expect(JSON.parse(await readFile(join(directory, 'letters.ndjson'), 'utf8'))).toMatchObject({
      payload: '***',
    })
    expect(await json('dlq', 'show', id)).toMatchObject({ payload: '***' })
    const { stdout, stderr } = await cli('dlq', 'show', id)
    expect(stdout).not.toContain('한글')
    expect(stderr).toContain('Nothing of payloads is shown: without --config FILE nobody can tell')
    const refused = await cli('dlq', 'show', id, '--reveal')
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain('--reveal needs --operator NAME')
    const asked = ['--reveal', '--operator', 'kim', '--note', 'a complaint'] as const
    expect(await json('dlq', 'show', id, ...asked)).toMatchObject({ payload: hostilePayload })
    expect(
      await rows(`select operator, action, target, note from ${database.schema}.outbox_operator_log`),
    ).toEqual([{ operator: 'kim', action: 'reveal', target: { deadLetter: id }, note: 'a complaint' }])
  })

  test('U10 with a catalogue the rest is shown, also where an error quotes it', async () => {
    await writeConfig()
    expect(await json('dlq', 'show', id, '--config', 'config.mjs')).toMatchObject({
      payload: { text: '***' },
    })
    await database.pool.query(
      `update ${database.schema}.outbox_dead_letter set error_message = 'said: ' || (payload ->> 'text')`,
    )
    const listed = await json<{ deadLetters: { errorMessage: string }[] }>(
      'dlq',
      'list',
      '--config',
      'config.mjs',
    )
    expect(listed.deadLetters[0]?.errorMessage).toBe('said: ***')
    expect(JSON.stringify(await json('dlq', 'group', '--config', 'config.mjs'))).not.toContain('한글')
  })

  test('D3 writes a line of JSON for each, without passwords', async () => {
    const { code, stdout, stderr } = await cli('dlq', 'export', '--reveal', '--operator', 'kim')
    expect(code).toBe(0)
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toMatchObject([
      { id, payload: hostilePayload, attemptHistory: [{ attempt: 1 }], reason: 'NON_RETRYABLE' },
    ])
    expect(stdout).not.toContain('hunter2')
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
    expect(stderr).toContain('Dead letters exported: 1.')
    expect(stderr).not.toContain('--config FILE')
    expect((await cli('dlq', 'export', '--type', 'None')).stdout).toBe('')
  })

  test('D3 to a new file that only its owner reads; with a catalogue, masked', async () => {
    await writeConfig()
    expect(await json('dlq', 'export', '--out', 'letters.ndjson', '--config', 'config.mjs')).toEqual({
      action: 'export',
      file: 'letters.ndjson',
      exported: 1,
    })
    const file = join(directory, 'letters.ndjson')
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ id, payload: { text: '***' } })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await readdir(directory)).toEqual(['config.mjs', 'letters.ndjson'])
  })

  test('never touches a file that is there, and leaves nothing half-written', async () => {
    await writeFile(join(directory, 'old.ndjson'), 'precious')
    const refused = await cli('dlq', 'export', '--out', 'old.ndjson', '--json')
    expect(refused.code).toBe(1)
    expect(JSON.parse(refused.stderr.split('\n')[0] ?? '')).toMatchObject({ error: { code: 'FILE_ERROR' } })
    expect(await readFile(join(directory, 'old.ndjson'), 'utf8')).toBe('precious')
    const nowhere = await cli('dlq', 'export', '--out', 'none/new.ndjson', '--lang', 'ko')
    expect(nowhere).toMatchObject({ code: 1, stdout: '' })
    expect(nowhere.stderr).toContain('파일을 사용할 수 없습니다: 그런 파일이나 디렉터리가 없습니다 (ENOENT)')
    // A row that cannot be read breaks the export off after the file was begun.
    await database.pool.query(`update ${database.schema}.outbox_dead_letter set headers = '[1]'`)
    await database.pool.query(`alter table ${database.schema}.outbox_operator_log rename to away`)
    expect((await cli('dlq', 'export', '--out', 'new.ndjson')).code).toBe(1)
    expect(await readdir(directory)).toEqual(['old.ndjson'])
  })
})

describe('dlq purge', () => {
  test('D3 removes what was resolved long ago, by name', async () => {
    expect(await cli('dlq', 'purge', '--older-than', '1d')).toMatchObject({ code: 2, stdout: '' })
    expect((await cli('dlq', 'purge', '--operator', 'kim')).stderr).toContain('--older-than is missing')
    const age = ['--older-than', '1ms', '--operator', 'kim']
    expect(await json('dlq', 'purge', ...age)).toEqual({
      action: 'purge',
      purged: 0,
      subscription: null,
      operator: 'kim',
      note: null,
    })
    await cli('dlq', 'resolve', id, '--operator', 'kim', '--note', 'by hand')
    const { stdout } = await cli('dlq', 'purge', ...age, '--note', 'old', '--lang', 'ko')
    expect(stdout).toContain('해결된 데드 레터 1건을 삭제했습니다')
    expect(await rows(`select * from ${database.schema}.outbox_dead_letter`)).toEqual([])
    expect((await rows(`select action, note from ${database.schema}.outbox_operator_log`)).at(-1)).toEqual({
      action: 'purge',
      note: 'old',
    })
  })
})

describe('dlq amend', () => {
  const KIM = ['--operator', 'kim', '--note', 'typo'] as const

  test('D3 puts an event with another payload in the place of the dead one', async () => {
    const amended = await json<{ eventId: string }>(
      'dlq',
      'amend',
      id,
      '--payload',
      '{"text":"good"}',
      ...KIM,
    )
    expect(amended).toMatchObject({
      action: 'amend',
      id,
      subscription: 'mailer',
      operator: 'kim',
      note: 'typo',
    })
    expect(await rows(`select event_id, status from ${database.schema}.outbox_delivery`)).toEqual([
      { event_id: amended.eventId, status: 'PENDING' },
    ])
    const listed = await cli('dlq', 'list', '--all')
    expect(listed.stdout).toContain('amended by kim')
    const again = await cli('dlq', 'amend', id, '--payload', '{}', ...KIM)
    expect(again).toMatchObject({ code: 1, stdout: '' })
  })

  test('D3 from a file, checked by the catalogue of a config', async () => {
    await writeConfig()
    const file = join(directory, 'payload.json')
    const amend = [
      'dlq',
      'amend',
      id,
      '--payload-file',
      'payload.json',
      '--config',
      'config.mjs',
      ...KIM,
    ] as const
    await writeFile(file, '{"text": 5}')
    const refused = await cli(...amend, '--json')
    expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: 'PAYLOAD_INVALID' } })
    expect(await rows(`select status from ${database.schema}.outbox_delivery`)).toEqual([{ status: 'DEAD' }])
    await writeFile(file, '{"text": "good"}')
    const { code, stdout, stderr } = await cli(...amend, '--lang', 'ko')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('그 자리를 대신하며')
  })

  test.each([
    [['--payload', '{'], 2, 'The payload is not JSON'],
    [[], 2, 'A payload is missing'],
    [['--payload', '{}', '--payload-file', 'x'], 2, 'not both'],
    [['--payload-file', 'none.json'], 1, 'cannot be used: there is no such file or directory (ENOENT)'],
    [['--payload', '12345678901234567890'], 1, 'beyond 2^53'],
    [['--payload', '{"a":"\\u0000"}'], 1, 'NUL'],
    [['--payload', '{}', '--config', 'none.mjs'], 1, 'There is no config file'],
  ])('%j is refused, and nothing changes', async (args, code, says) => {
    const result = await cli('dlq', 'amend', id, ...args, ...KIM)
    expect(result).toMatchObject({ code, stdout: '' })
    expect(result.stderr).toContain(says)
    expect(await rows(`select status from ${database.schema}.outbox_delivery`)).toEqual([{ status: 'DEAD' }])
    expect(await rows(`select * from ${database.schema}.outbox_operator_log`)).toEqual([])
  })
})
