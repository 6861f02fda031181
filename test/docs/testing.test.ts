import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { compiledDirectory } from '../support/program.ts'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

test('docs/testing.md shows the example that is run here', () => {
  const [, shown] = /```ts\n([\s\S]*?)```/.exec(read('docs/testing.md')) ?? []
  const asUsersImportIt = read('examples/testing.ts')
    .replaceAll('../src/index.ts', 'commitpost')
    .replaceAll('../src/store/postgres/index.ts', 'commitpost/postgres')
    .replaceAll('../src/testing/index.ts', 'commitpost/testing')
  expect(shown).toBe(asUsersImportIt)
})

test('the example of docs/testing.md passes, in a database that had nothing before', async () => {
  const name = `testing_${randomBytes(4).toString('hex')}`
  const admin = new pg.Client({ connectionString: inject('databaseUrl') })
  await admin.connect()
  await admin.query(`create database ${name}`)
  try {
    const url = new URL(inject('databaseUrl'))
    url.pathname = `/${name}`
    const file = join(compiledDirectory, 'examples', 'testing.js')
    const program = spawn(process.execPath, ['--test', '--test-reporter=tap', file], {
      env: { ...process.env, DATABASE_URL: url.href },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exit = once(program, 'exit')
    expect(await text(program.stdout)).toMatch(/^# pass 3$/m)
    expect(await exit).toEqual([0, null])
  } finally {
    await admin.query(`drop database ${name} with (force)`)
    await admin.end()
  }
})
