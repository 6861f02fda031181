import { createHash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/runtime/clock.ts'
import { rejection } from '../acceptance/support.ts'
import { insertEvent, inTransaction, one } from '../store/postgres/fixtures.ts'
import { CARD, linesOf, manifestOf, OPERATOR, openScene, payments, rowsOf, type Scene } from './support.ts'

let scene: Scene

beforeEach(async () => {
  scene = await openScene()
})
afterEach(async () => {
  await scene[Symbol.asyncDispose]()
})

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

describe('an export', () => {
  test('L11 holds everything of every event, in order, in files of the size that was asked for', async () => {
    const ids = await scene.pay(5)
    await insertEvent(scene.db.pool, { stream: 'shop.coupon', type: 'CouponIssued' })
    const exported = await scene.outbox.exports.run({ ...payments(scene), maxFileEvents: 2 })
    expect(exported).toMatchObject({
      stream: 'shop.payment',
      firstPosition: '1',
      lastPosition: '6',
      events: 5,
    })
    const directory = exported?.location ?? ''
    const { files, ...manifest } = await manifestOf(directory)
    expect(manifest).toMatchObject({
      format: 'commitpost-export',
      version: 1,
      events: 5,
      late: 0,
      previousManifestSha256: null,
      masking: { masked: true, fields: { PaymentTaken: ['card.number'] } },
    })
    expect(files.map((file) => file.events)).toEqual([2, 2, 1])
    for (const file of files) {
      const bytes = await readFile(join(directory, file.name))
      expect([bytes.length, sha256(bytes)]).toEqual([file.bytes, file.sha256])
    }
    expect(sha256(await readFile(join(directory, 'manifest.json')))).toBe(exported?.manifestSha256)
    const rows = await rowsOf(directory)
    expect(rows.map((row) => row['eventId'])).toEqual(ids)
    expect(rows[2]).toMatchObject({
      position: '3',
      stream: 'shop.payment',
      type: 'PaymentTaken',
      schemaVersion: 1,
      aggregateType: 'payment',
      aggregateId: '3',
      orderingKey: 'payment:3',
      sequence: null,
      headers: { traceId: 't3' },
      payload: { amount: 3, card: { number: '***' } },
      deliveries: [],
    })
    expect(Number.isNaN(Date.parse(rows[2]?.['occurredAt'] as string))).toBe(false)
    expect(Number.isNaN(Date.parse(rows[2]?.['createdAt'] as string))).toBe(false)
    expect((await stat(directory)).mode & 0o777).toBe(0o700)
  })

  test('L11 the next one goes on after it, and names it by its hash', async () => {
    await scene.pay(2)
    const first = await scene.outbox.exports.run(payments(scene))
    expect(await scene.outbox.exports.run(payments(scene))).toBeNull()
    const ids = await scene.pay(1)
    const second = await scene.outbox.exports.run(payments(scene))
    expect(second).toMatchObject({ firstPosition: '3', lastPosition: '3', events: 1 })
    expect((await rowsOf(second?.location ?? '')).map((row) => row['eventId'])).toEqual(ids)
    const { previousManifestSha256 } = await manifestOf(second?.location ?? '')
    expect(previousManifestSha256).toBe(first?.manifestSha256)
    expect(await scene.outbox.exports.list({ stream: 'shop.payment' })).toEqual([second, first])
  })

  test('tells what became of an event at each subscription', async () => {
    const worker = scene.outbox.worker([
      scene.outbox.subscription('ledger', { order: 'aggregate', on: { PaymentTaken: () => undefined } }),
      scene.outbox.subscription('mailer', { on: { PaymentTaken: () => undefined } }),
    ])
    await worker.active()
    await scene.pay(1)
    const open = "select count(*)::int from outbox_delivery where status <> 'DONE'"
    while ((await one(scene.db.pool, open)) !== 0) await systemClock.sleep(5)
    await worker.stop()
    const exported = await scene.outbox.exports.run(payments(scene))
    const [row] = await rowsOf(exported?.location ?? '')
    expect(row?.['deliveries']).toMatchObject([
      { subscription: 'ledger', status: 'DONE', attempts: 1 },
      { subscription: 'mailer', status: 'DONE', attempts: 1 },
    ])
  })

  test('keeps numbers that JavaScript has no room for', async () => {
    await scene.db.pool.query(
      `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
       values ('shop.coupon', 'CouponIssued', 'coupon', '1', '{"code": 12345678901234567890.123}')`,
    )
    const exported = await scene.outbox.exports.run({ ...payments(scene), stream: 'shop.coupon' })
    expect((await linesOf(exported?.location ?? ''))[0]).toContain('12345678901234567890.123')
  })

  test('ends before what is too young', async () => {
    await scene.pay(3)
    await inTransaction(scene.db, async (client) => {
      await client.query('set local session_replication_role = replica')
      await client.query(`update outbox_event set created_at = now() - interval '8 days' where id <= 2`)
    })
    const exported = await scene.outbox.exports.run({ ...payments(scene), olderThan: '7d' })
    expect(exported).toMatchObject({ firstPosition: '1', lastPosition: '2', events: 2 })
    const until = new Date(Date.now() - 60_000)
    expect(await scene.outbox.exports.run({ ...payments(scene), until })).toBeNull()
  })
})

describe('completeness', () => {
  test('L11 waits for a transaction that may publish at a position before its end', async () => {
    await scene.pay(1)
    const client = await scene.db.pool.connect()
    await client.query('begin')
    const late = await insertEvent(client, { stream: 'shop.payment', type: 'PaymentTaken' })
    await scene.pay(1)
    const refused = await rejection(scene.outbox.exports.run({ ...payments(scene), waitMs: 100 }))
    expect(refused).toMatchObject({ code: 'INVALID_STATE' })
    expect(refused.message).toContain(
      'A transaction that was open before this export has not ended within 100 ms',
    )
    expect(await readdir(scene.directory)).toEqual([])
    const running = scene.outbox.exports.run(payments(scene))
    await client.query('commit')
    client.release()
    const exported = await running
    expect(exported).toMatchObject({ lastPosition: '3', events: 3 })
    expect((await rowsOf(exported?.location ?? ''))[1]).toMatchObject({ eventId: late, position: '2' })
  })

  test('an event that took the place of an exported one is in the next export, and not taken for exported before', async () => {
    const worker = scene.outbox.worker([
      scene.outbox.subscription('ledger', {
        maxAttempts: 1,
        on: {
          PaymentTaken: () => {
            throw new Error('no')
          },
        },
      }),
    ])
    await worker.active()
    const [original = ''] = await scene.pay(1)
    while ((await scene.outbox.deadLetters.count()) === 0) await systemClock.sleep(5)
    await worker.stop()
    const first = await scene.outbox.exports.run(payments(scene))
    await scene.outbox.exports.verify(first?.location ?? '', { operator: OPERATOR })
    const isExported = (eventId: string): Promise<boolean> =>
      one(scene.db.pool, `select outbox_is_exported('shop.payment', 1, $1)`, [eventId])
    expect(await isExported(original)).toBe(true)
    const [letter] = await scene.outbox.deadLetters.list()
    const payload = { amount: 7, card: { number: CARD } }
    const { eventId } = await scene.outbox.deadLetters.amend(letter?.id ?? '', payload, {
      operator: OPERATOR,
    })
    expect(await isExported(eventId)).toBe(false)
    // The files are as they were: what came later does not make them incomplete.
    expect(await scene.outbox.exports.verify(first?.location ?? '')).toMatchObject({ holds: true })
    await scene.pay(1)
    const second = await scene.outbox.exports.run(payments(scene))
    expect(await rowsOf(second?.location ?? '')).toMatchObject([
      { eventId, position: '1', amendedFrom: original },
      { position: '2' },
    ])
    expect(await manifestOf(second?.location ?? '')).toMatchObject({ events: 2, late: 1, firstPosition: '2' })
    expect(await isExported(eventId)).toBe(false)
    const verified = await scene.outbox.exports.verify(second?.location ?? '', { operator: OPERATOR })
    expect(verified).toMatchObject({ holds: true, events: 2 })
    expect(await isExported(eventId)).toBe(true)
  })

  test('of two at once for one stream, one is recorded and the other leaves nothing', async () => {
    await scene.pay(3)
    // Both have their files on disk, and wait to be recorded.
    const holder = await scene.db.pool.connect()
    await holder.query('begin')
    await holder.query('lock table outbox_export_head in exclusive mode')
    const other = scene.outboxWith({ clock: { ...systemClock, now: () => new Date(0) } })
    const both = Promise.allSettled([
      scene.outbox.exports.run(payments(scene)),
      other.exports.run(payments(scene)),
    ])
    const waiting = `select count(*)::int from pg_stat_activity where wait_event_type = 'Lock' and query like $1`
    const records = `%"${scene.db.schema}".outbox_record_export%`
    while ((await one(scene.db.pool, waiting, [records])) !== 2) await systemClock.sleep(5)
    expect(await readdir(scene.directory)).toHaveLength(2)
    await holder.query('commit')
    holder.release()
    const [refused] = (await both).filter(({ status }) => status === 'rejected')
    expect(refused).toMatchObject({
      reason: {
        code: 'INVALID_STATE',
        message:
          'The next export of stream "shop.payment" begins at position 4, not at 1. Somebody else has exported it ' +
          'meanwhile. Start again: it goes on from there.',
      },
    })
    const [recorded, ...more] = await scene.outbox.exports.list()
    expect(more).toEqual([])
    expect(await readdir(scene.directory)).toEqual([basename(recorded?.location ?? '')])
  })
})

describe('the record', () => {
  test('L11 the act is in the operator log, in the same transaction', async () => {
    await scene.pay(2)
    const exported = await scene.outbox.exports.run({ ...payments(scene), note: 'end of the year' })
    const logged = await one(scene.db.pool, `select to_jsonb(o) from outbox_operator_log o`)
    expect(logged).toMatchObject({
      operator: OPERATOR,
      action: 'export',
      affected: 2,
      note: 'end of the year',
      target: {
        export: Number(exported?.id),
        stream: 'shop.payment',
        masked: true,
        firstPosition: 1,
        lastPosition: 2,
      },
    })
  })

  test('L11 can neither be changed nor removed, and the chain tells if a superuser did', async () => {
    for (let n = 0; n < 3; n += 1) {
      await scene.pay(1)
      await scene.outbox.exports.run(payments(scene))
    }
    expect(await scene.outbox.proof.audit()).toMatchObject({
      holds: true,
      exports: { holds: true, entries: 3 },
    })
    for (const sql of [
      'update outbox_export set location = $$/elsewhere$$',
      'delete from outbox_export',
      'truncate outbox_export',
      'update outbox_export set verified_at = null',
    ]) {
      expect(await rejection(scene.db.pool.query(sql))).toMatchObject({ code: '55000' })
    }
    const sabotaged = async (sql: string): Promise<unknown> =>
      inTransaction(scene.db, async (client) => {
        await client.query('set local session_replication_role = replica')
        await client.query(sql)
        await client.query('set local session_replication_role = origin')
      }).then(() => scene.outbox.proof.audit())
    expect(await sabotaged('update outbox_export set events = 7 where entry = 2')).toMatchObject({
      holds: false,
      broken: null,
      exports: { holds: false, broken: { entry: '2', problem: 'changed' } },
    })
    await sabotaged('update outbox_export set events = 1 where entry = 2')
    expect(await sabotaged('delete from outbox_export where entry = 3')).toMatchObject({
      exports: { broken: { entry: '3', problem: 'cut-off' } },
    })
    expect(await sabotaged('delete from outbox_export where entry = 1')).toMatchObject({
      exports: { broken: { entry: '1', problem: 'missing' } },
    })
  })
})
