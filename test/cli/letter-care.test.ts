import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { useLetterScene } from './letter-scene.ts'
import { hostilePayload } from './support.ts'

const scene = useLetterScene()
const { cli, json, rows, writeConfig } = scene

describe('dlq blocked', () => {
  test('D3 lists keys that wait behind a dead letter', async () => {
    expect(await json('dlq', 'blocked')).toEqual({ blockedKeys: [], nextAfter: null })
    expect((await cli('dlq', 'blocked')).stderr).toContain('No key is blocked')
    const { schema, pool } = scene.database
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
    expect(JSON.parse(await readFile(join(scene.directory, 'letters.ndjson'), 'utf8'))).toMatchObject({
      payload: '***',
    })
    expect(await json('dlq', 'show', scene.id)).toMatchObject({ payload: '***' })
    const { stdout, stderr } = await cli('dlq', 'show', scene.id)
    expect(stdout).not.toContain('한글')
    expect(stderr).toContain('Nothing of payloads is shown: without --config FILE nobody can tell')
    const refused = await cli('dlq', 'show', scene.id, '--reveal')
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain('--reveal needs --operator NAME')
    const asked = ['--reveal', '--operator', 'kim', '--note', 'a complaint'] as const
    expect(await json('dlq', 'show', scene.id, ...asked)).toMatchObject({ payload: hostilePayload })
    expect(
      await rows(`select operator, action, target, note from ${scene.database.schema}.outbox_operator_log`),
    ).toEqual([{ operator: 'kim', action: 'reveal', target: { deadLetter: scene.id }, note: 'a complaint' }])
  })

  test('U10 with a catalogue the rest is shown, also where an error quotes it', async () => {
    await writeConfig()
    expect(await json('dlq', 'show', scene.id, '--config', 'config.mjs')).toMatchObject({
      payload: { text: '***' },
    })
    await scene.database.pool.query(
      `update ${scene.database.schema}.outbox_dead_letter set error_message = 'said: ' || (payload ->> 'text')`,
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
      { id: scene.id, payload: hostilePayload, attemptHistory: [{ attempt: 1 }], reason: 'NON_RETRYABLE' },
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
    const file = join(scene.directory, 'letters.ndjson')
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ id: scene.id, payload: { text: '***' } })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await readdir(scene.directory)).toEqual(['config.mjs', 'letters.ndjson'])
  })

  test('never touches a file that is there, and leaves nothing half-written', async () => {
    await writeFile(join(scene.directory, 'old.ndjson'), 'precious')
    const refused = await cli('dlq', 'export', '--out', 'old.ndjson', '--json')
    expect(refused.code).toBe(1)
    expect(JSON.parse(refused.stderr.split('\n')[0] ?? '')).toMatchObject({ error: { code: 'FILE_ERROR' } })
    expect(await readFile(join(scene.directory, 'old.ndjson'), 'utf8')).toBe('precious')
    const nowhere = await cli('dlq', 'export', '--out', 'none/new.ndjson', '--lang', 'ko')
    expect(nowhere).toMatchObject({ code: 1, stdout: '' })
    expect(nowhere.stderr).toContain('파일을 사용할 수 없습니다: 그런 파일이나 디렉터리가 없습니다 (ENOENT)')
    // A row that cannot be read breaks the export off after the file was begun.
    await scene.database.pool.query(`update ${scene.database.schema}.outbox_dead_letter set headers = '[1]'`)
    await scene.database.pool.query(`alter table ${scene.database.schema}.outbox_operator_log rename to away`)
    expect((await cli('dlq', 'export', '--out', 'new.ndjson')).code).toBe(1)
    expect(await readdir(scene.directory)).toEqual(['old.ndjson'])
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
    await cli('dlq', 'resolve', scene.id, '--operator', 'kim', '--note', 'by hand')
    const { stdout } = await cli('dlq', 'purge', ...age, '--note', 'old', '--lang', 'ko')
    expect(stdout).toContain('해결된 데드 레터 1건을 삭제했습니다')
    expect(await rows(`select * from ${scene.database.schema}.outbox_dead_letter`)).toEqual([])
    expect(
      (await rows(`select action, note from ${scene.database.schema}.outbox_operator_log`)).at(-1),
    ).toEqual({
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
      scene.id,
      '--payload',
      '{"text":"good"}',
      ...KIM,
    )
    expect(amended).toMatchObject({
      action: 'amend',
      id: scene.id,
      subscription: 'mailer',
      operator: 'kim',
      note: 'typo',
    })
    expect(await rows(`select event_id, status from ${scene.database.schema}.outbox_delivery`)).toEqual([
      { event_id: amended.eventId, status: 'PENDING' },
    ])
    const listed = await cli('dlq', 'list', '--all')
    expect(listed.stdout).toContain('amended by kim')
    const again = await cli('dlq', 'amend', scene.id, '--payload', '{}', ...KIM)
    expect(again).toMatchObject({ code: 1, stdout: '' })
  })

  test('D3 from a file, checked by the catalogue of a config', async () => {
    await writeConfig()
    const file = join(scene.directory, 'payload.json')
    const amend = [
      'dlq',
      'amend',
      scene.id,
      '--payload-file',
      'payload.json',
      '--config',
      'config.mjs',
      ...KIM,
    ] as const
    await writeFile(file, '{"text": 5}')
    const refused = await cli(...amend, '--json')
    expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: 'PAYLOAD_INVALID' } })
    expect(await rows(`select status from ${scene.database.schema}.outbox_delivery`)).toEqual([
      { status: 'DEAD' },
    ])
    await writeFile(file, '{"text": "good"}')
    const { code, stdout, stderr } = await cli(...amend, '--lang', 'ko')
    expect(code).toBe(0)
    expect(stdout).toContain('구독에서 그 자리를 대신합니다')
    expect(stderr).toMatch(/^지금 상태와 기다리는 이유: commitpost why [0-9a-f-]{36}\n$/)
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
    const result = await cli('dlq', 'amend', scene.id, ...args, ...KIM)
    expect(result).toMatchObject({ code, stdout: '' })
    expect(result.stderr).toContain(says)
    expect(await rows(`select status from ${scene.database.schema}.outbox_delivery`)).toEqual([
      { status: 'DEAD' },
    ])
    expect(await rows(`select * from ${scene.database.schema}.outbox_operator_log`)).toEqual([])
  })
})
