import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { DoctorOptions } from '../../../src/inspect/doctor-options.ts'
import type { Finding, FindingCode } from '../../../src/inspect/finding.ts'
import type { Proof } from '../../../src/inspect/proof.ts'
import { ManualClock } from '../../../src/runtime/manual-clock.ts'
import { postgresStore } from '../../../src/store/postgres/postgres-store.ts'
import { createTestDatabase } from '../../support/database.ts'
import { eventually } from '../../support/program.ts'
import { sturdyPool } from '../../support/sturdy-pool.ts'
import { beat, claim, join } from '../contract/helpers.ts'
import {
  createProofDatabase,
  type ProofDatabase,
  proofOn,
  publish,
  sabotage,
  settle,
} from './proof-fixtures.ts'
import { createRolesDatabase } from './role-fixtures.ts'

let db: ProofDatabase

beforeEach(async () => {
  db = await createProofDatabase()
})
afterEach(async () => {
  await db.drop()
})

/** What a doctor says with this code. */
async function found(
  code: FindingCode,
  options: DoctorOptions = {},
  proof: Proof = db.proof,
): Promise<readonly Finding[]> {
  const { findings } = await proof.doctor(options)
  return findings.filter((finding) => finding.code === code)
}

/** That a finding is this bad and comes with advice; and that it was not there before. */
const firing = (severity: Finding['severity'], facts: object): object => ({
  severity,
  facts: expect.objectContaining(facts),
  message: expect.stringMatching(/\S/),
  advice: expect.stringMatching(/\S/),
})

describe('the doctor', () => {
  test('finds nothing wrong with new tables that are served', async () => {
    const sub = await join(db.worker)
    await beat(db.worker, sub, 'w', [])
    // The server of the tests runs without fsync, and other tests hold transactions open.
    const { findings } = await proofOn(db.pool, db.schema, { types: ['OrderPlaced'] }).doctor()
    const own = findings.filter(({ check }) => !['durability', 'xmin', 'clock'].includes(check))
    expect(own.map(({ check, severity, code, advice }) => [check, severity, code, advice])).toEqual([
      ['schema', 'ok', 'SCHEMA_CURRENT', null],
      ['objects', 'ok', 'OBJECTS_SOUND', null],
      ['rights', 'ok', 'RIGHTS_SOUND', null],
      ['bloat', 'ok', 'TABLES_LEAN', null],
      ['leases', 'ok', 'LEASES_SOUND', null],
      ['pauses', 'ok', 'NONE_PAUSED', null],
      ['types', 'ok', 'TYPES_KNOWN', null],
      ['workers', 'ok', 'ALL_SERVED', null],
    ])
  })

  test('sees tables that are missing, too old or were changed, and looks no further', async () => {
    await using empty = await createTestDatabase()
    const { severity, findings } = await proofOn(empty.pool, empty.schema).doctor()
    expect(severity).toBe('problem')
    expect(findings[0]).toMatchObject(firing('problem', { state: 'missing', found: null }))
    expect(findings.some(({ check }) => check === 'workers')).toBe(false)

    await db.pool.query(`update outbox_migration set checksum = 'edited' where version = 1`)
    expect(await found('SCHEMA_CHANGED')).toMatchObject([firing('warning', { steps: ['core'] })])
    await db.pool.query('delete from outbox_migration where version > 1')
    expect(await found('SCHEMA_NOT_CURRENT')).toMatchObject([
      firing('problem', { state: 'behind', found: 1 }),
    ])
  })

  test.each([
    ['drop index outbox_delivery_due', 'index', 'outbox_delivery_due', 'missing'],
    ['alter table outbox_inbox drop constraint outbox_inbox_pkey', 'index', 'outbox_inbox_pkey', 'missing'],
    [
      `update pg_index set indisvalid = false where indexrelid = 'outbox_delivery_due'::regclass`,
      'index',
      'outbox_delivery_due',
      'invalid',
    ],
    ['drop trigger outbox_number on outbox_event', 'trigger', 'outbox_number', 'missing'],
    ['alter table outbox_event disable trigger outbox_fan_out', 'trigger', 'outbox_fan_out', 'disabled'],
    [
      'alter table outbox_event enable replica trigger outbox_fan_out',
      'trigger',
      'outbox_fan_out',
      'disabled',
    ],
  ])('sees what is broken: %s', async (sql, kind, name, problem) => {
    const table = problem === 'disabled' ? `${db.schema}.outbox_event` : null
    expect(await found('OBJECT_BROKEN')).toEqual([])
    await db.pool.query(sql)
    expect(await found('OBJECT_BROKEN')).toMatchObject([firing('problem', { kind, name, problem, table })])
  })

  test('sees rights that nobody needs', async () => {
    await using roles = await createRolesDatabase()
    const proof = proofOn(roles.pool, roles.schema)
    expect(await found('RIGHTS_SOUND', {}, proof)).toHaveLength(1)
    const viewer = `${roles.schema}_viewer`
    const object = `${roles.schema}.outbox_event`
    await roles.pool.query(
      `grant select on outbox_event to public; grant delete on outbox_event to ${viewer}`,
    )
    await roles.pool.query(`grant execute on function outbox_forget(uuid[]) to public`)
    expect(await found('RIGHT_SURPLUS', {}, proof)).toMatchObject([
      firing('problem', { role: 'public', right: 'select', object }),
      firing('problem', {
        role: 'public',
        right: 'execute',
        object: `${roles.schema}.outbox_forget(uuid[])`,
      }),
      firing('warning', { role: viewer, right: 'delete', object }),
    ])
  })

  test('says which tables a role may not read; a viewer may read all and is told about sessions it cannot see', async () => {
    await using roles = await createRolesDatabase()
    const worker = proofOn(roles.as.worker, roles.schema)
    expect(await found('TABLES_UNREADABLE', {}, worker)).toMatchObject([
      firing('problem', { tables: expect.arrayContaining(['outbox_operator_log']) }),
    ])
    const viewer = proofOn(roles.as.viewer, roles.schema)
    expect(await found('TABLES_UNREADABLE', {}, viewer)).toEqual([])
    expect(await found('SESSIONS_HIDDEN', {}, viewer)).toMatchObject([firing('warning', {})])
    expect((await viewer.verify()).holds).toBe(true)
    expect((await viewer.audit()).holds).toBe(true)
  })

  test('sees dead rows, bloat and a table that is never vacuumed', async () => {
    const table = `${db.schema}.outbox_delivery`
    await join(db.worker)
    await publish(db, 5)
    await db.pool.query(
      'alter table outbox_delivery set (autovacuum_enabled = false); analyze outbox_delivery',
    )
    const client = await db.pool.connect()
    await client.query('update outbox_delivery set updated_at = now()')
    client.release()
    expect(await found('AUTOVACUUM_OFF')).toMatchObject([firing('problem', { table })])
    expect(await found('DEAD_TUPLES')).toEqual([])
    const ofDeliveries = async (code: FindingCode, options: DoctorOptions): Promise<readonly Finding[]> =>
      (await found(code, options)).filter(({ facts }) => 'table' in facts && facts.table === table)
    const isCounted = async (): Promise<boolean> =>
      (await ofDeliveries('DEAD_TUPLES', { deadTuples: 4 })).length > 0
    await eventually('the server has counted', isCounted)
    expect(await ofDeliveries('DEAD_TUPLES', { deadTuples: 4 })).toMatchObject([
      firing('warning', { deadTuples: 5, lastVacuum: null }),
    ])
    expect(await found('BLOAT')).toEqual([])
    expect(await ofDeliveries('BLOAT', { bloatBytes: 0 })).toMatchObject([firing('warning', {})])
  })

  test('names who keeps the server from cleaning up, with his statement, but without the values in it', async () => {
    const holder = new pg.Client({ connectionString: db.url, application_name: 'nightly report' })
    await holder.connect()
    // No pid, and no number of seconds, has as many digits.
    const telling = `select 'secret', 47114711471147114711 /* and this */ from outbox_event where stream = 'hidden'`
    await holder.query('begin isolation level repeatable read')
    await holder.query(telling)
    const { rows } = await holder.query<{ pid: number }>('select pg_backend_pid() as pid')
    // Whoever else is on the server may hold something too.
    const held = async (): Promise<readonly Finding[]> =>
      (await found('XMIN_HELD', { transactionSeconds: 0 })).filter(
        ({ facts }) => 'name' in facts && facts.name === 'nightly report',
      )
    expect(await held()).toMatchObject([
      firing('warning', { kind: 'session', pid: rows[0]?.pid, query: 'select pg_backend_pid() as pid' }),
    ])
    await holder.query(telling)
    const said = JSON.stringify(await held())
    expect(said).toContain('select ?, ? from outbox_event where stream = ?')
    expect(said).not.toMatch(/secret|47114711471147114711|hidden|and this/)
    expect(await found('XMIN_HELD', { transactionSeconds: 3_600 })).toEqual([])
    await holder.query('rollback')
    await holder.end()
  })

  test('sees synchronous_commit switched off, and a server that does not write to disk', async () => {
    const url = new URL(db.url)
    url.searchParams.set('options', `${url.searchParams.get('options')} -c synchronous_commit=off`)
    const pool = sturdyPool({ connectionString: url.href, max: 1 })
    const said = await found('NOT_DURABLE', {}, proofOn(pool, db.schema))
    await pool.end()
    expect(said).toContainEqual(expect.objectContaining(firing('warning', { setting: 'synchronous_commit' })))
    const { rows } = await db.pool.query<{ fsync: string }>('show fsync')
    const withoutFsync = said.some(({ facts }) => 'setting' in facts && facts.setting === 'fsync')
    expect(withoutFsync).toBe(rows[0]?.fsync === 'off')
  })

  test('sees a clock that is wrong', async () => {
    const proof = proofOn(db.pool, db.schema, { clock: new ManualClock(new Date(Date.now() - 90_000)) })
    const [skew, ...others] = await found('CLOCK_SKEW', {}, proof)
    expect(others).toEqual([])
    expect(skew).toMatchObject(firing('warning', { skewMs: expect.any(Number) }))
    if (skew?.code !== 'CLOCK_SKEW') throw new Error('no skew was found')
    expect(skew.facts.skewMs).toBeGreaterThan(60_000)
    expect(await found('CLOCKS_AGREE')).toHaveLength(1)
  })

  test('sees leases that nobody takes back', async () => {
    const sub = await join(db.worker)
    await publish(db, 3)
    await claim(db.worker, sub, 'gone', 2)
    await db.pool.query(
      `update outbox_delivery set locked_until = now() - interval '10 minutes' where lease_token is not null`,
    )
    expect(await found('LEASES_LAPSED')).toMatchObject([
      firing('problem', { subscription: 'sub', count: 2, seconds: expect.any(Number) }),
    ])
    expect(await found('LEASES_LAPSED', { leaseSeconds: 3_600 })).toEqual([])
  })

  test('sees a pause, and by whom', async () => {
    await join(db.worker)
    await postgresStore({ pool: db.pool, schema: db.schema }).setPaused('sub', true, 'kim', null)
    expect(await found('PAUSED')).toMatchObject([
      firing('warning', { subscription: 'sub', by: 'kim', at: expect.any(Date) }),
    ])
  })

  test('sees types that the catalogue does not know, also those that nobody took', async () => {
    const sub = await join(db.worker, { eventTypes: ['OrderPlaced', 'OrderLost'] })
    await publish(db, 1)
    await publish(db, 2, { type: 'OrderLost' })
    await publish(db, 1, { type: 'Nobodys', stream: 'other' })
    await settle(db, sub, 3)
    expect(await found('TYPES_NOT_COMPARED')).toHaveLength(1)
    expect(await found('TYPES_UNKNOWN', { eventTypes: ['OrderPlaced'] })).toMatchObject([
      firing('warning', {
        types: [
          { eventType: 'OrderLost', stream: 'shop.order', count: 2 },
          { eventType: 'Nobodys', stream: 'other', count: 1 },
        ],
      }),
    ])
    expect(await found('TYPES_UNKNOWN', { eventTypes: ['OrderPlaced', 'OrderLost', 'Nobodys'] })).toEqual([])
  })

  test('sees a subscription without a live worker: a warning, and a problem once events wait', async () => {
    const sub = await join(db.worker)
    await beat(db.worker, sub, 'w', [])
    expect(await found('NO_WORKER')).toEqual([])
    await db.pool.query(`update outbox_worker set until = now() - interval '1 second'`)
    expect(await found('NO_WORKER')).toMatchObject([
      firing('warning', { subscription: 'sub', hasPending: false }),
    ])
    await publish(db, 1)
    expect(await found('NO_WORKER')).toMatchObject([
      firing('problem', { subscription: 'sub', hasPending: true }),
    ])
  })

  test('changes nothing, also where it finds the worst', async () => {
    await join(db.worker)
    await publish(db, 2)
    await sabotage(db, 'delete from outbox_delivery')
    const tables = `select (select md5(string_agg(t::text, '')) from outbox_subscription t) as one,
                           (select md5(string_agg(t::text, '')) from outbox_event t) as two`
    const before = (await db.pool.query(tables)).rows
    await db.proof.doctor()
    await db.proof.verify()
    expect((await db.pool.query(tables)).rows).toEqual(before)
  })
})
