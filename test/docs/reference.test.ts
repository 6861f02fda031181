import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import * as commitpost from '../../src/index.ts'
import * as kafka from '../../src/kafka/index.ts'
import * as otel from '../../src/observe/otel/index.ts'
import * as postgres from '../../src/store/postgres/index.ts'
import * as testing from '../../src/testing/index.ts'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

function sources(): readonly string[] {
  const files = readdirSync(new URL('../../src', import.meta.url), { recursive: true, encoding: 'utf8' })
  return files.filter((file) => file.endsWith('.ts')).map((file) => `src/${file}`)
}

/** The words that stand in a heading or in code. */
const named = new Set(
  [...read('docs/reference.md').matchAll(/```[\s\S]*?```|`[^`\n]+`|^#+ .*$/gm)].flatMap(
    ([code]) => code.match(/\w+/g) ?? [],
  ),
)

test.each([
  ['commitpost', commitpost],
  ['commitpost/kafka', kafka],
  ['commitpost/otel', otel],
  ['commitpost/postgres', postgres],
  ['commitpost/testing', testing],
])('docs/reference.md names everything that %s exports', (_, exported) => {
  expect(Object.keys(exported).filter((name) => !named.has(name))).toEqual([])
})

/** Each group of options keeps the list of its names, which it refuses all others by. */
const optionNames = sources().flatMap((path) =>
  [...read(path).matchAll(/const OPTION_NAMES\b[^=]*= \[([^\]]*)\]/g)].flatMap(([, list = '']) =>
    [...list.matchAll(/'(\w+)'/g)].map(([, name]) => [path, name as string] as const),
  ),
)

test('docs/reference.md names every option', () => {
  expect(optionNames.length).toBeGreaterThan(50)
  expect(optionNames.filter(([, name]) => !named.has(name))).toEqual([])
})

test('docs/reference.md names every kind of WorkerEvent', () => {
  const kinds = [...read('src/observe/worker-events.ts').matchAll(/readonly kind: '(\w+)'/g)].map(
    ([, kind]) => kind as string,
  )
  const [section = ''] = /^## WorkerEvent\n[\s\S]*?(?=^## )/m.exec(read('docs/reference.md')) ?? []
  const told = [...section.matchAll(/^\| `(\w+)`/gm)].map(([, kind]) => kind as string)
  expect(told.toSorted()).toEqual(kinds.toSorted())
})
