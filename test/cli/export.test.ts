import { appendFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { linesOf } from '../retain/support.ts'
import { createTestDatabaseWithTables, type TestDatabase } from '../support/database.ts'
import { PATIENCE_MS } from '../support/patience-ms.ts'
import { compiledDirectory } from '../support/program.ts'
import { at, runCli } from './support.ts'

let database: TestDatabase
let directory: string

beforeAll(async () => {
  database = await createTestDatabaseWithTables()
  directory = await mkdtemp(join(tmpdir(), 'commitpost-cli-export-'))
})
afterAll(async () => {
  await rm(directory, { recursive: true, force: true })
  await database.drop()
})

function cli(...args: readonly string[]): ReturnType<typeof runCli> {
  return runCli([...args, ...at(database)], { cwd: directory })
}

const OUT = ['--stream', 'shop.payment', '--directory', '.', '--wait', `${PATIENCE_MS}ms`] as const
const ALL = '--reveal'
const KIM = ['--operator', 'kim'] as const
const CARD = '4111-1111-1111-1111'

async function pay(): Promise<void> {
  await database.pool.query(
    `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
     values ('shop.payment', 'PaymentTaken', 'payment', '1', $1)`,
    [{ amount: 7, card: CARD }],
  )
}

async function exportedAs(...args: readonly string[]): Promise<string> {
  await pay()
  const { stdout, stderr, code } = await cli('export', 'run', ...OUT, ...KIM, ...args, '--json')
  expect({ code, stderr: stderr.includes('"error"') }).toEqual({ code: 0, stderr: false })
  return (JSON.parse(stdout) as { exported: { location: string } }).exported.location
}

const compiled = (path: string): string => JSON.stringify(pathToFileURL(join(compiledDirectory, path)).href)

async function writeConfig(): Promise<void> {
  await writeFile(
    join(directory, 'config.mjs'),
    `import { createOutbox } from ${compiled('src/outbox.js')}
     import { defineEvents } from ${compiled('src/event/define-events.js')}
     import { postgresStore } from ${compiled('src/store/postgres/postgres-store.js')}
     const events = defineEvents({ PaymentTaken: { stream: 'shop.payment', aggregate: 'payment', sensitive: ['card'] } })
     const outbox = createOutbox({ store: postgresStore({ pool: { connect() {} } }), events })
     export default { outbox, subscriptions: [outbox.subscription('ledger', { on: { PaymentTaken() {} } })] }`,
  )
}

test('U10 what is sensitive is in the files only if somebody asks for it by name', async () => {
  await writeConfig()
  await pay()
  const blind = await cli('export', 'run', ...OUT, ...KIM)
  expect(blind).toMatchObject({ code: 2, stdout: '' })
  expect(blind.stderr).toContain(
    'Give --config FILE, whose catalogue says what is sensitive and is masked, or --reveal',
  )
  const masked = await linesOf(await exportedAs('--config', 'config.mjs'))
  expect(masked.join('')).not.toContain(CARD)
  expect(masked[0]).toContain('"payload":{"card":"***","amount":7}')
  const revealed = await linesOf(
    await exportedAs('--config', 'config.mjs', '--reveal', '--note', 'for the auditor'),
  )
  expect(revealed[0]).toContain(CARD)
  const { rows } = await database.pool.query(
    `select target -> 'masked' as masked, operator, note from outbox_operator_log order by entry desc limit 2`,
  )
  expect(rows).toEqual([
    { masked: false, operator: 'kim', note: 'for the auditor' },
    { masked: true, operator: 'kim', note: null },
  ])
})

test('L6 L11 an export is run, listed and verified, in both languages', async () => {
  await pay()
  const ran = await cli('export', 'run', ...OUT, ...KIM, ALL)
  expect(ran.code).toBe(0)
  expect(ran.stdout).toMatch(
    /^Exported \d events of shop\.payment, positions \d+ to \d+\. Recorded for kim\.$/m,
  )
  const location = /^They are in (.*)$/m.exec(ran.stdout)?.[1] ?? ''
  expect(ran.stderr).toContain(`commitpost export verify ${location} --operator NAME`)
  const again = await cli('export', 'run', ...OUT, ...KIM, ALL)
  expect(again).toMatchObject({ code: 0, stdout: '' })
  expect(again.stderr).toContain('There is nothing new to export of shop.payment: nothing was written.')
  expect((await cli('export', 'list')).stdout).toMatch(/ kim +not yet +\S/)
  const looked = await cli('export', 'verify', location)
  expect(looked.stdout).toMatch(
    /^The export holds: 1 events of shop\.payment in 1 files\.\nIt is export \d+ of the/,
  )
  const verified = await cli('export', 'verify', location, ...KIM, '--lang', 'ko')
  expect(verified.stdout).toMatch(
    /^온전합니다\. .*\n.*\n내보내기 \d+번을 운영자 kim의 이름으로 검증했다고 기록했습니다\.\n$/,
  )
  expect((await cli('export', 'list', '--json')).stdout).toMatch(/"verifiedAt": ?"20/)
  expect((await cli('audit', 'verify')).stdout).toMatch(/The chain of exports holds: \d exports\./)
})

test('L11 one that does not hold ends with 3, without a database too, and says what is wrong', async () => {
  const location = await exportedAs(ALL)
  const alone = (...args: readonly string[]): ReturnType<typeof runCli> =>
    runCli(['export', 'verify', ...args], { cwd: directory })
  const held = await alone(location)
  expect(held).toMatchObject({ code: 0 })
  expect(held.stdout).toContain('Only the files were looked at: no database was given.')
  const needs = await alone(location, ...KIM)
  expect(needs).toMatchObject({ code: 2, stdout: '' })
  expect(needs.stderr).toContain('--operator records the verification in a database')
  await appendFile(join(location, 'events-000001.ndjson.gz'), 'x')
  const broken = await cli('export', 'verify', location, ...KIM)
  expect(broken.code).toBe(3)
  expect(broken.stdout).toMatch(
    /^The export does NOT hold, at events-000001\.ndjson\.gz: the file was changed\.\nits bytes were changed: /,
  )
  await rm(join(location, 'manifest.json'))
  const half = await alone(location, '--json')
  expect(half.code).toBe(3)
  expect(JSON.parse(half.stdout)).toMatchObject({ holds: false, problem: { kind: 'half-written' } })
  expect((await alone('nowhere')).code).toBe(1)
})

test.each([
  [['--stream', 'x', '--directory', '.'], 2, '--operator is missing'],
  [[...OUT, ...KIM, '--until', '1h', '--older-than', '1h'], 2, 'Give --until or --older-than, not both.'],
  [['--stream', 'unheard', '--directory', '.', ...KIM], 1, 'There is no stream "unheard"'],
  [['--stream', 'shop.payment', '--directory', 'none', ...KIM], 1, 'cannot be used (ENOENT)'],
  [
    [...OUT, ...KIM, '--note', 'x'.repeat(100_000)],
    2,
    '--note must be at most 2000 characters long, but is 100000.',
  ],
])('export run %j is refused, and nothing changes', async (args, code, says) => {
  await pay()
  const before = await readdir(directory)
  const refused = await cli('export', 'run', ...args, ALL)
  expect(refused).toMatchObject({ code, stdout: '' })
  expect(refused.stderr).toContain(says)
  expect(await readdir(directory)).toEqual(before)
})
