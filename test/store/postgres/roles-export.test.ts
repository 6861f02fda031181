import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createMasking } from '../../../src/event/masking.ts'
import { createExports, type Exports } from '../../../src/retain/exports.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { postgresStore } from '../../../src/store/postgres/postgres-store.ts'
import { rejection } from '../../acceptance/support.ts'
import { insertEvent, refusal } from './fixtures.ts'
import { createRolesDatabase, type Job, type RolesDatabase } from './role-fixtures.ts'

let db: RolesDatabase
let directory: string

beforeAll(async () => {
  db = await createRolesDatabase()
  directory = await mkdtemp(join(tmpdir(), 'commitpost-roles-'))
  await insertEvent(db.pool)
})
afterAll(async () => {
  await rm(directory, { recursive: true })
  await db.drop()
})

function exportsAs(job: Job): Exports {
  const store = postgresStore({ pool: db.as[job], schema: db.schema })
  const openStore = (): ReturnType<typeof store.openExports> => store.openExports()
  return createExports({ openStore, masking: createMasking(null, { export: 'keep' }), clock: systemClock })
}

const request = (operator = 'kim'): { stream: string; directory: string; operator: string } => ({
  stream: 'shop.order',
  directory,
  operator,
})

test('L6 L11 an operator exports, verifies and lists; a viewer looks, and cannot record', async () => {
  const refused = await rejection(exportsAs('viewer').run(request()))
  expect(refused).toMatchObject({ code: 'STORE_REFUSED' })
  const operator = exportsAs('operator')
  const exported = await operator.run(request())
  const location = exported?.location ?? ''
  expect(await exportsAs('viewer').verify(location)).toMatchObject({ holds: true, verifiedAt: null })
  expect(await rejection(exportsAs('viewer').verify(location, { operator: 'kim' }))).toMatchObject({
    code: 'STORE_REFUSED',
  })
  expect((await operator.verify(location, { operator: 'kim' })).verifiedAt).toBeInstanceOf(Date)
  expect(await exportsAs('viewer').list()).toHaveLength(1)
})

describe.each(['publisher', 'worker', 'operator', 'viewer'] as const)('L11 the %s cannot', (job) => {
  test.each([
    `update outbox_export set verified_at = now()`,
    'delete from outbox_export',
    `update outbox_export_head set hash = 'x'`,
    `insert into outbox_export (stream, first_position, last_position, events, location, manifest_sha256, masked,
       exported_by) values ('s', 1, 2, 3, 'l', repeat('0', 64), true, 'k')`,
    `update outbox_amendment set export_id = 1`,
    'create temp table t (a int); create trigger t before insert on t for each row execute function outbox_chain_export()',
  ])('%s', async (sql) => {
    expect(await refusal(db.as[job].query(`begin; ${sql}; rollback`))).toBe('42501')
  })
})

test('an act without a name is refused by the database too', async () => {
  const anonymous = `select outbox_record_export('s', 1, 2, 0, '/x', repeat('0', 64), true, '{}', ' ')`
  expect(await refusal(db.as.operator.query(anonymous))).toBe('22023')
  expect(await refusal(db.as.operator.query(`select outbox_verify_export(1, '', null)`))).toBe('22023')
})
