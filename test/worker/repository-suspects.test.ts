import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { postgresOutbox } from './postgres-outbox.ts'
import {
  BROKEN_OFF,
  find,
  findIds,
  lapseAll,
  lockDeliveries,
  meanwhile,
  type Repository,
  rows,
  SETTLING_FAILED,
  statuses,
  suspect,
  withSeams,
  withSteps,
} from './repository-scene.ts'

const MARK_ALONE = 'markAlone: update outbox_delivery'
const MARKING_ALONE = /set suspect = true/

describe('a suspect', () => {
  test('is not charged with a crash when the answer to its mark is lost, because nobody ran it', async () => {
    await using postgres = await postgresOutbox()
    await using one = await withSeams(postgres, { maxAttempts: 1 })
    await postgres.place('a')
    await suspect(postgres)
    const lost = one.loseAnswer(MARK_ALONE)
    await expect(one.repository.findPending(100)).rejects.toThrow(BROKEN_OFF)
    await lost
    expect(await rows(postgres)).toEqual([{ status: 'PENDING', attempt_count: 0, suspect: true }])
    // As if its lease had ended meanwhile.
    await lapseAll(postgres)
    expect(await one.repository.findPending(100)).toMatchObject([{ aggregateId: 'a', retryCount: 0 }])
    expect(await postgres.outbox.deadLetters.count()).toBe(0)
  })

  test('that may not run goes back at once, and is found the next time', async () => {
    await using postgres = await postgresOutbox()
    await using one = await withSteps(postgres)
    await postgres.place('a')
    await suspect(postgres)
    const marking = one.pool.holdBefore(MARKING_ALONE)
    const givingBack = one.pool.holdBefore(SETTLING_FAILED)
    const finding = find(one.repository)
    const unlock = await meanwhile(marking, () => lockDeliveries(postgres))
    await meanwhile(givingBack, unlock)
    expect(await finding).toEqual([])
    expect(await rows(postgres)).toEqual([{ status: 'PENDING', attempt_count: 0, suspect: true }])
    expect(await find(one.repository)).toEqual(['a'])
  })

  test.each([
    ['the next look', (repository: Repository) => find(repository)],
    ['closing', (repository: Repository) => repository.close()],
  ])('that could not be given back is given back by %s', async (_, next) => {
    await using postgres = await postgresOutbox()
    await using one = await withSteps(postgres)
    await postgres.place('a')
    await suspect(postgres)
    const marking = one.pool.holdBefore(MARKING_ALONE)
    const finding = find(one.repository)
    const unlock = await meanwhile(marking, () => lockDeliveries(postgres))
    expect(await finding).toEqual([])
    expect(await statuses(postgres)).toEqual(['PROCESSING'])
    await unlock()
    const found = await next(one.repository)
    expect(found ?? []).toEqual(found === undefined ? [] : ['a'])
    expect(await rows(postgres)).toMatchObject([
      found === undefined
        ? { status: 'PENDING', attempt_count: 0 }
        : { status: 'PROCESSING', attempt_count: 1 },
    ])
  })

  test('stays alone until it is marked, whoever looks meanwhile', async () => {
    await using postgres = await postgresOutbox()
    await using one = await withSteps(postgres)
    await postgres.place('a')
    await suspect(postgres)
    const [id = ''] = await findIds(one.repository)
    await postgres.place('b')
    expect(await find(one.repository)).toEqual([])
    await one.repository.markProcessed([id])
    expect(await find(one.repository)).toEqual(['b'])
  })

  test('stays alone no longer than its lease', async () => {
    await using postgres = await postgresOutbox()
    const clock = new ManualClock()
    await using one = await withSteps(postgres, { clock, leaseMs: 60_000 })
    await postgres.place('a')
    await suspect(postgres)
    expect(await find(one.repository)).toEqual(['a'])
    await postgres.place('b')
    await clock.advance(59_999)
    expect(await find(one.repository)).toEqual([])
    await clock.advance(1)
    expect(await find(one.repository)).toEqual(['b'])
  })

  test('is found alone also by two that look at once', async () => {
    await using postgres = await postgresOutbox()
    await using one = await withSteps(postgres)
    await postgres.place('a', 'b')
    await suspect(postgres)
    expect(await Promise.all([find(one.repository), find(one.repository)])).toEqual([['a'], []])
  })

  test('beside which something is in hand is not marked, and so not charged', async () => {
    await using postgres = await postgresOutbox()
    await using one = await withSteps(postgres)
    await postgres.place('beside')
    expect(await find(one.repository)).toEqual(['beside'])
    await postgres.place('a')
    await suspect(postgres)
    expect(await find(one.repository)).toEqual(['a'])
    expect(await rows(postgres)).toMatchObject([{ suspect: false }, { suspect: false }])
    await postgres.place('b')
    expect(await find(one.repository)).toEqual(['b'])
  })

  test('that this repository has lost is alone again when it comes again', async () => {
    await using postgres = await postgresOutbox()
    const clock = new ManualClock()
    await using one = await withSteps(postgres, { clock, leaseMs: 60_000 })
    await postgres.place('a')
    await suspect(postgres)
    expect(await find(one.repository)).toEqual(['a'])
    await clock.advance(60_000)
    await lapseAll(postgres)
    // It is charged, and so it waits.
    expect(await find(one.repository)).toEqual([])
    await postgres.pool.query('update outbox_delivery set next_retry_at = now()')
    expect(await find(one.repository)).toEqual(['a'])
    expect(await rows(postgres)).toEqual([{ status: 'PROCESSING', attempt_count: 2, suspect: true }])
  })
})
