import { describe, expect, test } from 'vitest'
import { LeaseLostError, NotFoundError } from '../../src/runtime/errors.ts'
import { comes } from '../support/patience.ts'
import { sturdyPool } from '../support/sturdy-pool.ts'
import { postgresOutbox } from './postgres-outbox.ts'
import {
  BROKEN_OFF,
  connection,
  find,
  findIds,
  lapseAll,
  meanwhile,
  repositoryOn,
  rows,
  SETTLING_FAILED,
  statuses,
  withSeams,
  withSteps,
} from './repository-scene.ts'

const SETTLE_DONE = 'settle: update outbox_delivery + delete from outbox_lease'
const SETTLE_FAILED = 'settle: update outbox_delivery + insert into outbox_dead_letter'

describe('when the answer to a mark is lost', () => {
  test('marking again is written, not lost: by this very repository', async () => {
    await using postgres = await postgresOutbox()
    await using one = await withSeams(postgres)
    await postgres.place('a', 'b')
    const ids = await findIds(one.repository)
    const lost = one.loseAnswer(SETTLE_DONE)
    await expect(one.repository.markProcessed(ids)).rejects.toThrow(BROKEN_OFF)
    await lost
    expect(await statuses(postgres)).toEqual(['DONE', 'DONE'])
    await one.repository.markProcessed(ids)
    await expect(one.repository.markProcessed(ids)).rejects.toBeInstanceOf(NotFoundError)
  })

  test('so it is for the part that was written before it broke, and the rest is written now', async () => {
    await using postgres = await postgresOutbox()
    await using one = await withSeams(postgres)
    await postgres.place('a', 'b')
    const ids = [...(await findIds(one.repository, 1)), ...(await findIds(one.repository, 1))]
    const lost = one.loseAnswer(SETTLE_DONE)
    await expect(one.repository.markProcessed(ids)).rejects.toThrow(BROKEN_OFF)
    await lost
    expect(await statuses(postgres)).toEqual(['DONE', 'PROCESSING'])
    await one.repository.markProcessed(ids)
    expect(await statuses(postgres)).toEqual(['DONE', 'DONE'])
  })

  test('the last failure can be marked again, and is one dead letter', async () => {
    await using postgres = await postgresOutbox()
    await using one = await withSeams(postgres, { maxAttempts: 1 })
    await postgres.place('a')
    const [id = ''] = await findIds(one.repository)
    const lost = one.loseAnswer(SETTLE_FAILED)
    await expect(one.repository.markFailed(id, 'broken')).rejects.toThrow(BROKEN_OFF)
    await lost
    await one.repository.markFailed(id, 'broken')
    expect(await statuses(postgres)).toEqual(['DEAD'])
    expect(await postgres.outbox.deadLetters.count()).toBe(1)
  })

  test('what is marked otherwise the second time was not written that way, and it says so', async () => {
    await using postgres = await postgresOutbox()
    await using one = await withSeams(postgres, { maxAttempts: 1 })
    await postgres.place('a')
    const [id = ''] = await findIds(one.repository)
    const lost = one.loseAnswer(SETTLE_DONE)
    await expect(one.repository.markProcessed([id])).rejects.toThrow(BROKEN_OFF)
    await lost
    await expect(one.repository.markFailed(id, 'broken')).rejects.toBeInstanceOf(LeaseLostError)
    expect(await statuses(postgres)).toEqual(['DONE'])
  })

  test('of a failure with attempts left nobody can tell whose it is: it is lost', async () => {
    await using postgres = await postgresOutbox()
    await using one = await withSeams(postgres)
    await postgres.place('a')
    const [id = ''] = await findIds(one.repository)
    const lost = one.loseAnswer(SETTLE_FAILED)
    await expect(one.repository.markFailed(id, 'broken')).rejects.toThrow(BROKEN_OFF)
    await lost
    await expect(one.repository.markFailed(id, 'broken')).rejects.toBeInstanceOf(LeaseLostError)
    expect(await rows(postgres)).toMatchObject([{ status: 'PENDING', attempt_count: 1 }])
  })

  test('one that somebody else has marked since is lost to whoever never tried', async () => {
    await using postgres = await postgresOutbox()
    await using one = await withSeams(postgres)
    await using other = await withSeams(postgres)
    await postgres.place('a')
    const ids = await findIds(one.repository)
    await lapseAll(postgres)
    expect(await findIds(other.repository)).toEqual(ids)
    await other.repository.markProcessed(ids)
    await expect(one.repository.markProcessed(ids)).rejects.toBeInstanceOf(LeaseLostError)
  })
})

describe('closing', () => {
  test('during a look gives back what that finds', async () => {
    await using postgres = await postgresOutbox()
    await using one = await withSteps(postgres)
    await postgres.place('a', 'b')
    const claiming = one.pool.holdBefore(/insert into \S*outbox_lease/)
    const finding = one.repository.findPending(100)
    const closed = await meanwhile(claiming, async () => ({ done: one.repository.close() }))
    await expect(finding).rejects.toMatchObject({ code: 'INVALID_STATE' })
    await closed.done
    expect(await rows(postgres)).toEqual([
      { status: 'PENDING', attempt_count: 0, suspect: false },
      { status: 'PENDING', attempt_count: 0, suspect: false },
    ])
  })

  test('does not give back what is just being marked', async () => {
    await using postgres = await postgresOutbox()
    await using one = await withSteps(postgres)
    await postgres.place('a')
    const ids = await findIds(one.repository)
    const settling = one.pool.holdBefore(/outbox_delivery d\s+set status = 'DONE'/)
    const marking = one.repository.markProcessed(ids)
    const closed = await meanwhile(settling, async () => ({ done: one.repository.close() }))
    await marking
    await closed.done
    expect(await statuses(postgres)).toEqual(['DONE'])
    expect(one.pool.sent.filter(({ text }) => SETTLING_FAILED.test(text))).toEqual([])
  })

  test('closes the connections also where the database refuses to have something given back', async () => {
    await using postgres = await postgresOutbox()
    const name = `${postgres.database.schema} repository`
    // None ends by being idle.
    const pool = sturdyPool({ ...connection(postgres), application_name: name, idleTimeoutMillis: 0 })
    const repository = await repositoryOn(postgres, pool)
    await postgres.place('a')
    expect(await find(repository)).toEqual(['a'])
    await postgres.pool.query(`
      create function refuse() returns trigger language plpgsql as 'begin raise exception ''not back''; end';
      create trigger refuse before update on outbox_delivery for each row
        when (new.status = 'PENDING') execute function refuse()`)
    await expect(repository.close()).rejects.toThrow('not back')
    await repository.close()
    await pool.end()
    await comes('its connections are gone', async () => {
      const open = await postgres.pool.query('select from pg_stat_activity where application_name = $1', [
        name,
      ])
      return open.rows.length === 0
    })
  })
})
