import { describe, expect, test } from 'vitest'
import { useLetterScene } from './letter-scene.ts'

const scene = useLetterScene()
const { cli, json, rows, writeConfig } = scene

/** Another dead letter like the first. */
async function copyLetter(): Promise<void> {
  await scene.database.pool.query(`
    insert into ${scene.database.schema}.outbox_dead_letter (subscription, position, event_id, stream, event_type,
           schema_version, aggregate_type, aggregate_id, payload, headers, occurred_at, error_code, error_message,
           retry_count)
    select subscription, position + 1, gen_random_uuid(), stream, event_type, schema_version, aggregate_type,
           aggregate_id, payload, headers, occurred_at, error_code, error_message, 0
      from ${scene.database.schema}.outbox_dead_letter`)
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
    expect(second).toMatchObject({ deadLetters: [{ id: scene.id }], total: 2, nextBefore: null })
    const logged = `select target, affected::int from ${scene.database.schema}.outbox_operator_log order by entry`
    expect(await rows(logged)).toEqual([
      { target: { list: { limit: 1, resolved: false } }, affected: 1 },
      { target: { list: { limit: 1, resolved: false, before: first.nextBefore } }, affected: 1 },
    ])
  })

  test('shows of what a decision made dead that nobody tried it', async () => {
    await scene.database.pool.query(`
      update ${scene.database.schema}.outbox_dead_letter
         set reason = 'MOVED_ASIDE', error_code = 'X', error_message = 'Not delivered: its ordering key was blocked',
             attempt_history = '[]'`)
    expect((await cli('dlq', 'list')).stdout).toMatch(/ order:7 +0 {2}X: /)
    expect((await cli('dlq', 'show', scene.id)).stdout).toMatch(/^Attempts +0$/m)
  })
})

describe('dlq group', () => {
  test('D8 U10 a masked group is still told by what its errors have in common', async () => {
    await writeConfig()
    await scene.database.pool.query(
      `update ${scene.database.schema}.outbox_dead_letter set error_message = 'order 17 said ' || (payload ->> 'text') || ' at 3 s'`,
    )
    expect(await json('dlq', 'group', '--config', 'config.mjs')).toMatchObject({
      groups: [{ pattern: 'order <n> said *** at <n> s' }],
    })
  })

  test('D3 D8 counts by what the errors have in common', async () => {
    expect(await json('dlq', 'group')).toMatchObject({
      groups: [{ errorCode: 'CARD_REFUSED', count: 1, sampleId: scene.id, subscriptions: ['mailer'] }],
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
  test('D8 tells when its policy delivers it again, in both languages and for programs', async () => {
    const redriveAt = async (at: string): Promise<void> => {
      await scene.database.pool.query(
        `update ${scene.database.schema}.outbox_dead_letter set redrive_at = $1`,
        [at],
      )
    }
    const show = async (...lang: readonly string[]): Promise<string> =>
      (await cli('dlq', 'show', scene.id, ...lang)).stdout
    expect(await show()).not.toContain('re-drive')
    await redriveAt('2030-01-02T03:04:05Z')
    expect(await show()).toMatch(/^Automatic re-drive +Jan 2, 2030, 0?3:04:05/m)
    expect(await show('--lang', 'ko')).toMatch(/^자동 재처리 +2030\. 1\. 2\. 0?3:04:05/m)
    expect(await json('dlq', 'show', scene.id)).toMatchObject({ redriveAt: '2030-01-02T03:04:05.000Z' })
    await redriveAt('infinity')
    expect(await show()).toMatch(/^Automatic re-drive +given up by its policy: it waits for a person$/m)
    expect(await show('--lang', 'ko')).toMatch(/^자동 재처리 +정책이 그만두었습니다/m)
    expect(await json('dlq', 'list')).toMatchObject({ deadLetters: [{ redriveAt: 'never' }] })
  })

  test('D2 tells why it is dead, in both languages', async () => {
    expect((await cli('dlq', 'show', scene.id)).stdout).toContain(
      'Reason        NON_RETRYABLE: The failure was one',
    )
    expect((await cli('dlq', 'show', scene.id, '--lang', 'ko')).stdout).toContain(
      'NON_RETRYABLE: 다시 시도해도',
    )
  })
})
