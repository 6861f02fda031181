import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { prometheusMetrics, type RetentionRun, type Worker, type WorkerEvent } from '../../src/index.ts'
import { resolveRetention } from '../../src/retain/retention-options.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { parseExposition } from '../support/exposition.ts'
import { PATIENCE_MS } from '../support/patience-ms.ts'
import { memberEvents, openRetention, type RetentionSystem } from './retention-system.ts'
import { eventually, rejection } from './support.ts'

let at: RetentionSystem

beforeEach(async () => {
  at = await openRetention()
})
afterEach(async () => {
  await at[Symbol.asyncDispose]()
})

const archive = (): Promise<{ event_id: string; payload: object }[]> =>
  at.system.rows('select event_id, payload from events order by position')

describe('retention of umbra', () => {
  test('U8 after 30 days an event is in the archive, once, and out of the outbox; a dead letter stays', async () => {
    await at.system.run([at.greeter()])
    const [old, dead] = await at.handled(31, 'ann', 'nobody')
    const [young] = await at.handled(29, 'bob')
    const workers: Worker[] = []
    for (let n = 0; n < 4; n += 1) {
      const outbox = at.withPolicies([at.archiving()])
      const observers = [(event: WorkerEvent) => void at.system.told.push(event)]
      workers.push(
        outbox.worker([outbox.subscription('greeter', { on: { MemberJoined: () => undefined } })], {
          housekeepingMs: 50,
          observers,
        }),
      )
    }
    await Promise.all(workers.map((worker) => worker.active()))
    const { retention } = at.withPolicies([at.archiving()])
    await eventually('it has been done', async () => (await retention.status())[0]?.finishedAt != null)
    await Promise.all(workers.map((worker) => worker.stop()))

    expect((await archive()).map(({ event_id }) => event_id)).toEqual([old])
    expect(await at.system.rows('select event_id from outbox_event order by id')).toEqual(
      [dead, young].map((event_id) => ({ event_id })),
    )
    expect(at.system.toldOf('retained')).toEqual([
      { kind: 'retained', policy: 'audit', stream: 'umbra.*', deleted: 0, archived: 1 },
    ])
    const log = await at.system.rows('select operator, action, affected from outbox_operator_log')
    expect(log).toEqual([{ operator: 'policy:audit', action: 'retain', affected: 1 }])
    const [letter] = await at.system.outbox.deadLetters.list()
    expect(letter).toMatchObject({ eventId: dead, resolved: false })
  })

  test('U8 an event that was archived cannot be published again, and a repeated run adds nothing', async () => {
    await at.system.run([at.greeter()])
    const [old] = await at.handled(31, 'ann')
    const { retention } = at.withPolicies([at.archiving()])
    expect(await retention.run({ operator: 'kim' })).toMatchObject([{ state: 'done', archived: 1 }])
    expect(await retention.run({ operator: 'kim' })).toMatchObject([{ state: 'done', archived: 0 }])
    expect(await archive()).toHaveLength(1)
    expect(await at.system.outbox.proof.why(old as string)).toMatchObject({
      event: null,
      archived: { archive: `${at.system.schema}.events`, subscriptions: ['greeter'] },
    })
    const again = { aggregateId: 'ann', eventId: old as string, payload: { name: 'ann', email: '' } }
    const refused = await rejection(at.system.publish('MemberJoined', again))
    expect(refused).toMatchObject({ code: 'DUPLICATE_EVENT' })
    expect(refused.message).toContain(old)
    const ignoring = at.system.publish('MemberJoined', { ...again, onDuplicate: 'ignore' })
    const ignored = await rejection(ignoring)
    expect(ignored).toMatchObject({ code: 'DUPLICATE_EVENT' })
    for (const { message } of [refused, ignored]) {
      expect(message).toContain(
        'give each event an id of its own: one that was archived is never taken again',
      )
      expect(message).not.toContain('onDuplicate')
    }
    expect(await at.system.count('outbox_event')).toBe(0)
  })

  test('U8 the archive is audit.events where that is asked for, unique by event id, each day before dawn', async () => {
    const audit = { schema: `${at.system.schema}_audit`, table: 'events' }
    const policy = at.archiving({ archive: audit })
    expect(resolveRetention({ policies: [policy] }, memberEvents, at.system.outbox.masking).hour).toBe(3)
    await at.system.run([at.greeter()])
    const [old] = await at.handled(31, 'ann')
    try {
      await at.withPolicies([policy]).retention.run({ operator: 'kim' })
      const events = `${audit.schema}.events`
      expect(await at.system.rows(`select event_id from ${events}`)).toEqual([{ event_id: old }])
      const again = at.system.pool.query(`insert into ${events} select * from ${events}`)
      expect(await rejection(again)).toMatchObject({ code: '23505' })
    } finally {
      await at.system.pool.query(`drop schema if exists ${audit.schema} cascade`)
    }
  })

  test('U10 the archive has sensitive fields masked, or the full trail where that is asked for', async () => {
    await at.system.run([at.greeter()])
    await at.handled(31, 'ann')
    await at.withPolicies([at.archiving()]).retention.run({ operator: 'kim' })
    await at.handled(31, 'bob')
    await at.withPolicies([at.archiving({ mask: false })]).retention.run({ operator: 'kim' })
    expect((await archive()).map(({ payload }) => payload)).toEqual([
      { name: 'ann', email: '***' },
      { name: 'bob', email: 'bob@example.com' },
    ])
  })

  test('E14 the metrics count what retention let go', async () => {
    await at.system.run([at.greeter()])
    await at.handled(31, 'ann', 'bob')
    const store = postgresStore({ pool: at.system.pool, schema: at.system.schema })
    const metrics = prometheusMetrics({ store, prefix: 'everbit_outbox', cacheMs: 0 })
    const outbox = at.withPolicies([at.archiving()], { metrics: metrics as never })
    await using worker = outbox.worker(
      [outbox.subscription('greeter', { on: { MemberJoined: () => undefined } })],
      { housekeepingMs: 50 },
    )
    await worker.active()
    await eventually('it is counted', async () => {
      const { samples } = parseExposition(await metrics.render())
      return samples.get('everbit_outbox_retained_total{policy="audit",result="archived"}') === 2
    })
  })
})

describe('retention of the ledger', () => {
  const week = { name: 'week', stream: 'umbra.member', keepDays: 7, action: 'delete' } as const

  test('L6 deletes what is older than 7 days in batches, told as it goes, while others are delivered', async () => {
    await at.system.run([at.greeter()])
    await at.handled(8, 'a', 'b', 'c', 'd', 'e')
    await at.handled(6, 'young')
    const { retention } = at.withPolicies([week], { batchSize: 2 })
    expect(await retention.run({ operator: 'kim', dryRun: true })).toMatchObject([
      { state: 'planned', deleted: 5, runId: null },
    ])
    expect(await at.system.count('outbox_event')).toBe(6)
    const told: RetentionRun[] = []
    const reports = await retention.run({
      operator: 'kim',
      note: 'disk is full',
      onProgress: (run) => {
        told.push(run)
        void at.join(`live-${told.length}`)
      },
    })
    expect(reports).toMatchObject([{ policy: 'week', state: 'done', deleted: 5, archived: 0 }])
    expect(new Set(told.map(({ deleted }) => deleted)).size).toBeGreaterThan(2)
    await eventually(
      'the live ones are there',
      async () => (await at.system.count('outbox_event')) === told.length + 1,
    )
    await at.system.untilSettled()
    const sum = `select sum(affected)::int, min(note) as note from outbox_operator_log where action = 'retain' and operator = 'kim'`
    expect(await at.system.rows(sum)).toEqual([{ sum: 5, note: 'disk is full' }])
    expect(await at.system.outbox.proof.verify()).toMatchObject({ holds: true })
  })

  test('L6 only after the export that is configured was verified', async () => {
    await at.system.run([at.greeter()])
    await at.handled(8, 'a', 'b')
    const { retention } = at.withPolicies([{ ...week, requireExport: true }])
    expect(await retention.run({ operator: 'kim' })).toMatchObject([{ deleted: 0, awaitingExport: 2 }])
    const directory = await mkdtemp(join(tmpdir(), 'commitpost-cold-'))
    const { exports } = at.system.outbox
    const exported = await exports.run({
      stream: 'umbra.member',
      directory,
      operator: 'kim',
      waitMs: PATIENCE_MS,
    })
    expect(await retention.run({ operator: 'kim' })).toMatchObject([{ deleted: 0, awaitingExport: 2 }])
    await exports.verify(exported?.location ?? '', { operator: 'kim' })
    await rm(directory, { recursive: true })
    expect(await retention.run({ operator: 'kim' })).toMatchObject([{ deleted: 2, awaitingExport: 0 }])
  })

  test('L11 a trail of archived events can be audited: the equation holds, and the record of the acts', async () => {
    await at.system.run([at.greeter()])
    await at.handled(31, 'a', 'b', 'nobody')
    await at.handled(0, 'c')
    await at.withPolicies([at.archiving()]).retention.run({ operator: 'kim' })
    const { proof } = at.system.outbox
    expect(await proof.verify()).toMatchObject({
      holds: true,
      subscriptions: [{ matched: 4, counts: { DONE: 1, DEAD: 1 }, archived: 2 }],
    })
    expect(await proof.audit()).toMatchObject({ holds: true })
    await at.system.pool.query('delete from events where position = (select min(position) from events)')
    expect(await proof.verify()).toMatchObject({ holds: false, subscriptions: [{ matched: 4, archived: 1 }] })
  })

  test('L6 a run that is interrupted goes on where it was, for whoever runs it next', async () => {
    await at.system.run([at.greeter()])
    await at.handled(8, 'a', 'b', 'c')
    const stop = new AbortController()
    const one = at.withPolicies([week], { batchSize: 1 })
    const begun = await one.retention.run({
      operator: 'kim',
      signal: stop.signal,
      onProgress: () => stop.abort(),
    })
    expect(begun).toMatchObject([{ state: 'interrupted', deleted: 1 }])
    await at.system.pool.query('update outbox_retention_run set held_until = now()') // as a lease lapses
    const ended = await at.withPolicies([week], { batchSize: 1 }).retention.run({ operator: 'lee' })
    expect(ended).toMatchObject([{ state: 'done', deleted: 3, runId: begun[0]?.runId }])
    const log = await at.system.rows('select operator, affected from outbox_operator_log order by id')
    expect(log).toEqual(['kim', 'lee', 'lee'].map((operator) => ({ operator, affected: 1 })))
  })

  test('L6 is refused without a name, without a policy and for a stream that has none, and changes nothing', async () => {
    await at.system.run([at.greeter()])
    await at.handled(8, 'a')
    const { retention } = at.withPolicies([week])
    expect(await rejection(retention.run({ operator: ' ' }))).toMatchObject({ code: 'INVALID_OPTIONS' })
    expect(await rejection(retention.run({ operator: 'policy:week' }))).toMatchObject({
      code: 'INVALID_OPTIONS',
    })
    expect(await rejection(retention.run({ operator: 'kim', stream: 'nope' }))).toMatchObject({
      code: 'NOT_FOUND',
    })
    expect(await rejection(at.system.outbox.retention.run({ operator: 'kim' }))).toMatchObject({
      code: 'INVALID_STATE',
    })
    expect(await at.system.count('outbox_event')).toBe(1)
    expect(await at.system.count('outbox_operator_log')).toBe(0)
  })
})
