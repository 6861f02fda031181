import type pg from 'pg'
import { expect, test } from 'vitest'
import { findingsKo } from '../../../src/cli/messages/findings-ko.ts'
import type { Finding } from '../../../src/inspect/finding.ts'
import { findingText, findingTexts } from '../../../src/inspect/finding-texts.ts'
import { plainWording } from '../../../src/inspect/wording.ts'
import { createTestDatabaseWithTables, type TestDatabase } from '../../support/database.ts'
import { sturdyPool } from '../../support/sturdy-pool.ts'
import { proofOn } from './proof-fixtures.ts'

/** Tables in a schema, and a role, whose names SQL takes only in quotes. */
interface AwkwardNames extends AsyncDisposable {
  readonly database: TestDatabase
  readonly schema: string
  readonly role: string
  /** For whoever follows the advice: the schema is not on its search path. */
  readonly elsewhere: pg.Pool
}

async function awkwardNames(): Promise<AwkwardNames> {
  const database = await createTestDatabaseWithTables()
  const schema = `${database.schema}-Shop`
  const role = `${database.schema}-Role`
  await database.pool.query(`alter schema ${database.schema} rename to "${schema}"; create role "${role}"`)
  const url = new URL(database.url)
  url.searchParams.set('options', '-c search_path=public')
  const elsewhere = sturdyPool({ connectionString: url.href, max: 1 })
  const close = async (): Promise<void> => {
    await database.pool.query(`drop owned by "${role}"; drop role "${role}"`)
    await elsewhere.end()
    await database.drop()
  }
  return { database, schema, role, elsewhere, [Symbol.asyncDispose]: close }
}

const SQL =
  /\b(?:alter table .*? (?:enable trigger \w+|reset \(\w+\))|revoke .*? from \S+?(?=\.(?:\s|$))|vacuum \S+?(?=\.(?:\s|$)))/

/** The statements of an advice, as they stand in it in both languages. */
function statementsOf(finding: Finding): readonly string[] {
  return [finding.advice, findingText(finding, findingsKo, plainWording).advice].map((advice) => {
    const [sql] = SQL.exec(advice ?? '') ?? []
    if (sql === undefined) throw new Error(`no statement in: ${advice}`)
    return sql
  })
}

test.each([
  ['OBJECT_BROKEN', 'alter table outbox_event disable trigger outbox_fan_out'],
  ['AUTOVACUUM_OFF', 'alter table outbox_alarm set (autovacuum_enabled = false)'],
  ['RIGHT_SURPLUS', 'grant delete on outbox_event to {role}'],
  ['RIGHT_SURPLUS', 'grant select on sequence outbox_event_id_seq to public'],
  ['RIGHT_SURPLUS', 'grant execute on function outbox_forget(uuid[]) to public'],
] as const)('the advice on %s can be run as it is, wherever one is: %s', async (code, sql) => {
  await using names = await awkwardNames()
  const { database, schema, role, elsewhere } = names
  const found = async (): Promise<readonly Finding[]> =>
    (await proofOn(database.pool, schema).doctor()).findings.filter((finding) => finding.code === code)
  const damage = sql.replace('{role}', `"${role}"`)
  await database.pool.query(`set search_path = "${schema}"; ${damage}; reset search_path`)
  const [finding, ...others] = await found()
  if (finding === undefined) throw new Error('nothing was found')
  expect(others).toEqual([])
  const [english = '', korean = ''] = statementsOf(finding)
  expect(korean).toBe(english)
  await elsewhere.query(english)
  expect(await found()).toEqual([])
})

test('the advice on dead rows can be run as it is, wherever one is', async () => {
  await using names = await awkwardNames()
  const { database, schema, elsewhere } = names
  await database.pool.query(`alter table "${schema}".outbox_alarm set (autovacuum_enabled = false)`)
  const { findings } = await proofOn(database.pool, schema).doctor()
  const [off] = findings.filter(({ code }) => code === 'AUTOVACUUM_OFF')
  if (off?.code !== 'AUTOVACUUM_OFF') throw new Error('nothing was found')
  const facts = { table: off.facts.table, deadTuples: 5, liveTuples: 1, lastVacuum: null }
  const finding = { check: 'bloat', severity: 'warning', code: 'DEAD_TUPLES', facts } as const
  const [english = '', korean = ''] = statementsOf({
    ...finding,
    ...findingText(finding, findingTexts, plainWording),
  })
  expect(korean).toBe(english)
  await elsewhere.query(english)
})
