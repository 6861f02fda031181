import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

// Rules on the text of the sources that the linter and the import rules cannot express.

const root = fileURLToPath(new URL('..', import.meta.url))

/** The beginning of a statement, in lower or upper case, at the start of a string or of a line. */
const statements = [
  'select\\s+\\S',
  'insert into\\s',
  'update\\s+\\S+\\s+(?:as\\s+\\w+\\s+)?set\\s',
  'delete from\\s',
  'create (?:table|schema|index)\\s',
  'with\\s+\\w+\\s+as\\s*\\(',
]
const sql = new RegExp(
  `(?:^\\s*|[\`'"(]\\s*)(?:${[...statements, ...statements.map(upperCase)].join('|')})`,
  'm',
)
const readsTheClock = /\bnew Date\(\s*\)|\bDate\.now\b|\bMath\.random\b/
const longestFile = 300

/** The pattern for the same words in upper case; its escapes keep their meaning. */
function upperCase(pattern: string): string {
  return pattern.replaceAll(/\\\w|[a-z]/g, (part) => (part.length === 1 ? part.toUpperCase() : part))
}

interface Source {
  readonly path: string
  readonly text: string
}

function sourcesIn(directory: string): Source[] {
  return readdirSync(join(root, directory), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `${directory}/${name.replaceAll('\\', '/')}`)
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
}

/** Comments may speak of anything. */
function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*$/gm, '$1')
}

function offenders(sources: readonly Source[], offends: (text: string) => boolean): string[] {
  return sources.filter(({ text }) => offends(text)).map(({ path }) => path)
}

function outside(prefixes: readonly string[]): Source[] {
  return sourcesIn('src')
    .filter(({ path }) => !prefixes.some((prefix) => path.startsWith(prefix)))
    .map(({ path, text }) => ({ path, text: withoutComments(text) }))
}

describe('the sources', () => {
  test('have SQL only in the adapters of store and stream', () => {
    expect(offenders(outside(['src/store/', 'src/stream/']), (text) => sql.test(text))).toEqual([])
  })

  test('read the clock and throw dice only in the runtime', () => {
    // The demo plays the user's part; the watchdog of the test server is the text of a program of its own.
    const allowed = ['src/runtime/', 'src/cli/demo/', 'src/testing/postgres/watchdog.ts']
    expect(offenders(outside(allowed), (text) => readsTheClock.test(text))).toEqual([])
  })

  test(`have no file of more than ${longestFile} lines`, () => {
    const files = ['src', 'test'].flatMap(sourcesIn)
    expect(offenders(files, (text) => text.trimEnd().split('\n').length > longestFile)).toEqual([])
  })

  test('have file names in kebab-case', () => {
    const names = ['src', 'test'].flatMap(sourcesIn).map(({ path }) => path)
    expect(names.filter((path) => !/^[a-z0-9/.-]+\.ts$/.test(path))).toEqual([])
  })
})

describe('the rules above', () => {
  test.each([
    '`select 1 from t`',
    "'insert into t values (1)'",
    '`\n  update outbox_event set x = 1`',
    'query("delete from t")',
    '`with taken as (select 1)`',
    '`\n    select id\n`',
    '`SELECT 1`',
    '"UPDATE t AS x SET y = 1"',
  ])('see SQL in %s', (text) => {
    expect(sql.test(text)).toBe(true)
  })

  test.each([
    'const select = 1',
    "'update the row'",
    'with(x)',
    'this.select (row)',
    "'Select a subscription'",
  ])('see none in %s', (text) => {
    expect(sql.test(text)).toBe(false)
  })

  test.each(['new Date()', 'Date.now()', 'clock ?? Date.now', 'Math.random()'])(
    'see the clock in %s',
    (text) => {
      expect(readsTheClock.test(text)).toBe(true)
    },
  )

  test('do not take a date made from a value for the clock', () => {
    expect(readsTheClock.test('new Date(row.created_at)')).toBe(false)
  })
})
