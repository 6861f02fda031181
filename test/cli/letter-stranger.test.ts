import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { useLetterScene } from './letter-scene.ts'

const scene = useLetterScene()
const { cli } = scene

const retire = (): Promise<unknown> =>
  scene.database.pool.query(
    `update outbox_subscription set state = 'retired', retired_at = now(), retired_by = 'kim'`,
  )

describe('a subscription that there never was', () => {
  test.each([
    ['list'],
    ['group'],
    ['blocked'],
    ['export', '--out', 'letters.ndjson'],
    ['purge', '--older-than', '1d', '--operator', 'kim'],
  ])(
    'is refused by dlq %s, with the names that there are: nothing found must not read as all is well',
    async (...args) => {
      const [english, korean] = [
        await cli('dlq', ...args, '--subscription', 'mailr'),
        await cli('dlq', ...args, '--subscription', 'mailr', '--lang', 'ko'),
      ]
      expect(english).toMatchObject({ code: 1, stdout: '' })
      expect(english.stderr).toContain('Error (NOT_FOUND): There is no subscription "mailr".')
      expect(english.stderr).toContain(' There are: mailer.')
      expect(korean.stderr).toContain('구독 "mailr"을(를) 찾을 수 없습니다.')
      expect(korean.stderr).toContain(' 있는 구독: mailer.')
      await expect(access(join(scene.directory, 'letters.ndjson'))).rejects.toThrow('ENOENT')
    },
  )

  test('is not one that is retired, nor one of which only dead letters are left, nor the place of what nobody took', async () => {
    const nothing = (name: string): ReturnType<typeof cli> =>
      cli('dlq', 'list', '--subscription', name, '--type', 'Other')
    expect(await nothing('(none)')).toMatchObject({ code: 0 })
    await retire()
    expect(await nothing('mailer')).toMatchObject({ code: 0 })
    await scene.database.pool.query(
      'begin; set local session_replication_role = replica; delete from outbox_subscription; commit',
    )
    expect(await nothing('mailer')).toMatchObject({ code: 0 })
    expect((await nothing('mailr')).stderr).toMatch(/schema\.\n/)
  })
})

describe('dlq show', () => {
  test('offers no retry that would be refused, and says what helps instead', async () => {
    const next = async (...lang: readonly string[]): Promise<string> =>
      (await cli('dlq', 'show', scene.id, ...lang)).stderr
    expect(await next()).toContain(`commitpost dlq retry ${scene.id} --operator NAME`)
    await retire()
    expect(await next()).toContain('Its subscription is retired, so it cannot be retried. Publish it again')
    expect(await next()).not.toContain('dlq retry')
    expect(await next('--lang', 'ko')).toContain('구독이 종료되어 재시도할 수 없습니다.')
    await scene.database.pool.query(`update outbox_dead_letter set subscription = '(none)'`)
    expect(await next()).toContain('No subscription takes it, so it cannot be retried. Subscribe and publish')
    expect(await next()).toContain(`commitpost dlq resolve ${scene.id} --operator NAME --note TEXT`)
    expect(await next('--lang', 'ko')).toContain('받는 구독이 없어 재시도할 수 없습니다.')
  })
})
