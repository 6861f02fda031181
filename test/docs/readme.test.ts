import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import { describe, expect, inject, test } from 'vitest'
import { compiledDirectory } from '../support/program.ts'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

const asUsersImportIt = (code: string): string =>
  code
    .replaceAll('../src/index.ts', 'commitpost')
    .replaceAll('../src/store/postgres/index.ts', 'commitpost/postgres')

describe('the README', () => {
  test('shows the example that is run here', () => {
    const [, shown] = /```ts\n([\s\S]*?)```/.exec(read('README.md')) ?? []
    expect(shown).toBe(asUsersImportIt(read('examples/five-minutes.ts')))
  })

  test('tells Korean readers the same story: the same headings, and the same code but for what people read', () => {
    const headings = (text: string): number => text.match(/^## /gm)?.length ?? 0
    expect(headings(read('README.ko.md'))).toBe(headings(read('README.md')))
    const [, shown = ''] = /```ts\n([\s\S]*?)```/.exec(read('README.ko.md')) ?? []
    const code = (text: string): string[] =>
      text.split('\n').filter((line) => !line.trimStart().startsWith('//') && !line.includes('console.log'))
    const english = code(asUsersImportIt(read('examples/five-minutes.ts')))
    for (const line of code(shown)) expect(english).toContain(line)
  })

  test('its example delivers the event, in a database that had nothing before', async () => {
    const name = `readme_${randomBytes(4).toString('hex')}`
    const admin = new pg.Client({ connectionString: inject('databaseUrl') })
    await admin.connect()
    await admin.query(`create database ${name}`)
    try {
      const url = new URL(inject('databaseUrl'))
      url.pathname = `/${name}`
      const program = spawn(process.execPath, [join(compiledDirectory, 'examples', 'five-minutes.js')], {
        env: { ...process.env, DATABASE_URL: url.href },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const exit = once(program, 'exit')
      for await (const line of createInterface({ input: program.stdout })) {
        expect(line).toMatch(/^attempt 1: receipt for [0-9a-f-]{36} over 12000$/)
        program.kill('SIGTERM')
      }
      expect(await exit).toEqual([0, null])
    } finally {
      await admin.query(`drop database ${name} with (force)`)
      await admin.end()
    }
  })
})
