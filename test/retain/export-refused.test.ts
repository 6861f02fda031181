import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createMasking } from '../../src/event/masking.ts'
import { createExports } from '../../src/retain/exports.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { postgresStore } from '../../src/store/postgres/postgres-store.ts'
import { rejection } from '../acceptance/support.ts'
import { insertEvent, one } from '../store/postgres/fixtures.ts'
import { events, openScene, payments, type Scene } from './support.ts'

let scene: Scene

beforeAll(async () => {
  scene = await openScene()
  await scene.pay(3)
})
afterAll(async () => {
  await scene[Symbol.asyncDispose]()
})

describe('an export that cannot be made', () => {
  const nothingHappened = async (): Promise<void> => {
    expect(await one(scene.db.pool, 'select count(*)::int from outbox_export')).toBe(0)
    expect(await one(scene.db.pool, 'select count(*)::int from outbox_operator_log')).toBe(0)
    expect(await readdir(scene.directory)).toEqual([])
  }

  test.each([
    ['no operator', { operator: ' ' }, 'operator must name who does this'],
    ['a note of 1 MB', { note: 'x'.repeat(1_048_576) }, 'note must be at most 2000 characters long'],
    ['an empty stream', { stream: '' }, 'stream must be text that is not empty'],
    ['two bounds', { until: new Date(), olderThan: '1d' }, 'give until or olderThan, not both'],
    ['no date', { until: new Date(Number.NaN) }, 'until must be a Date'],
    ['files of nothing', { maxFileEvents: 0 }, 'maxFileEvents must be a whole number from 1 to 500000'],
    ['an unknown option', { mask: true }, 'there is no option "mask"'],
  ])('%s is refused, and nothing happens', async (_, options, says) => {
    const refused = await rejection(scene.outbox.exports.run({ ...payments(scene), ...(options as object) }))
    expect(refused).toMatchObject({ code: 'INVALID_OPTIONS' })
    expect(refused.message).toContain(says)
    await nothingHappened()
  })

  test('a type that the catalogue does not know is refused: masked whole it would be lost', async () => {
    const stranger = await insertEvent(scene.db.pool, { stream: 'shop.stray', type: 'Unheard' })
    const stray = { ...payments(scene), stream: 'shop.stray' }
    const refused = await rejection(scene.outbox.exports.run(stray))
    expect(refused).toMatchObject({ code: 'UNKNOWN_EVENT_TYPE' })
    expect(refused.message).toContain(`Event ${stranger} is of type "Unheard", which is not in the catalogue`)
    await nothingHappened()
  })

  test('a stream that never was is refused', async () => {
    const refused = await rejection(scene.outbox.exports.run({ ...payments(scene), stream: 'shop.payments' }))
    expect(refused).toMatchObject({ code: 'NOT_FOUND' })
    expect(refused.message).toContain('There is no stream "shop.payments"')
    await nothingHappened()
  })

  test('a directory that is not there, is a file or cannot be written to is refused', async () => {
    const file = join(dirname(scene.directory), `${scene.db.schema}.file`)
    await writeFile(file, '')
    for (const [directory, reason] of [
      [join(scene.directory, 'missing'), 'ENOENT'],
      [file, 'ENOTDIR'],
      ['/proc', process.getuid?.() === 0 ? 'ENOENT' : 'EACCES'],
    ] as const) {
      const refused = await rejection(scene.outbox.exports.run({ ...payments(scene), directory }))
      expect(refused).toMatchObject({ code: 'FILE_ERROR' })
      expect(refused.message).toContain(reason)
      expect(refused.message).toContain(directory)
    }
    await nothingHappened()
  })

  test('what lies in the place of the new directory is not touched', async () => {
    const taken = join(scene.directory, 'shop.payment.1-4.19700101T000000000Z')
    await mkdir(taken)
    await writeFile(join(taken, 'mine.txt'), 'mine')
    const { exports } = scene.outboxWith({ clock: { ...systemClock, now: () => new Date(0) } })
    const refused = await rejection(exports.run(payments(scene)))
    expect(refused).toMatchObject({ code: 'FILE_ERROR' })
    expect(refused.message).toContain('EEXIST')
    expect(await readFile(join(taken, 'mine.txt'), 'utf8')).toBe('mine')
    await rm(taken, { recursive: true })
    await nothingHappened()
  })

  test('events that are removed while they are exported make it fail, and nothing is recorded', async () => {
    const store = postgresStore({ pool: scene.db.pool, schema: scene.db.schema }).openExports()
    const exportItems: typeof store.exportItems = async (...range) => {
      const items = await store.exportItems(...range)
      await scene.db.pool.query('select outbox_forget(array(select event_id from outbox_event where id = 2))')
      return items
    }
    const vanishing = new Proxy(store, {
      get: (target, name) => {
        if (name === 'exportItems') return exportItems
        const member: unknown = Reflect.get(target, name, target)
        return typeof member === 'function' ? (member.bind(target) as unknown) : member
      },
    })
    const exports = createExports({
      openStore: () => vanishing,
      masking: createMasking(events),
      clock: systemClock,
    })
    const refused = await rejection(exports.run(payments(scene)))
    expect(refused).toMatchObject({ code: 'INVALID_STATE' })
    expect(refused.message).toContain('1 event(s) of the stream were removed while they were being exported')
    await nothingHappened()
  })

  test('one that is broken off leaves nothing', async () => {
    const stop = new AbortController()
    const running = scene.outbox.exports.run({
      ...payments(scene),
      maxFileEvents: 1,
      signal: stop.signal,
      onProgress: () => stop.abort(),
    })
    expect(await rejection(running)).toMatchObject({ name: 'AbortError' })
    await nothingHappened()
  })
})
