import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ALERT_RULES, DEAD_LETTER_REASONS } from '../../src/index.ts'

const read = (path: string): string => readFileSync(new URL(`../../docs/${path}.md`, import.meta.url), 'utf8')

/** What stands in the first column of a table, and is a name in code. */
const rowsOf = (text: string): readonly string[] =>
  [...text.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name as string)

/** The defaults that a page tells: `unresolved: 10`. */
const defaultsOf = (text: string): readonly string[] =>
  [...text.matchAll(/`(\w+: [\w_]+)` +\|$/gm)].map(([, option]) => option as string)

test('the Korean page about alerts tells every rule, with the same defaults', () => {
  expect(defaultsOf(read('alerts.ko'))).toEqual(defaultsOf(read('alerts')))
  expect(rowsOf(read('alerts.ko'))).toEqual(expect.arrayContaining([...ALERT_RULES]))
})

test('the Korean page about dead letters tells every reason', () => {
  const reasons = Object.keys(DEAD_LETTER_REASONS)
  expect(rowsOf(read('dead-letters.ko')).filter((name) => reasons.includes(name))).toEqual(reasons)
})

test('the Korean page about the proof names the same commands', () => {
  const commands = (text: string): readonly string[] => [
    ...new Set([...text.matchAll(/^\|.*`commitpost ([a-z ]+)/gm)].map(([, name]) => (name as string).trim())),
  ]
  expect(commands(read('proof.ko'))).toEqual(commands(read('proof')))
})

test.each(['kafka', 'log-stream'])('the Korean page %s has the same options, codes and examples', (page) => {
  expect(rowsOf(read(`${page}.ko`))).toEqual(rowsOf(read(page)))
  const named = (text: string): readonly string[] =>
    [
      ...new Set(
        [...text.matchAll(/`([A-Z_]{5,}|dead_letter_\w+|[a-z]+-[a-z]+|\w+Ms|\w+Bytes)`/g)].map(
          ([, name]) => name as string,
        ),
      ),
    ].toSorted()
  expect(named(read(`${page}.ko`))).toEqual(named(read(page)))
})

test.each(['deploying', 'upgrading'])('the Korean page %s has the same commands and files', (page) => {
  const shown = (text: string): readonly string[] =>
    [...text.matchAll(/^ *```(?:sh|ts|dockerfile|yaml)\n([\s\S]*?)```/gm)].map(([, code = '']) =>
      code.replaceAll(/ #.*$/gm, ''),
    )
  expect(shown(read(`${page}.ko`))).toEqual(shown(read(page)))
  expect(shown(read(page)).length).toBeGreaterThan(2)
})

test.each(['publishing', 'subscriptions', 'operating', 'cli'])(
  'the Korean page %s has the same examples, names and links',
  (page) => {
    const code = /^```[\s\S]*?^```$/gm
    const shown = (text: string): readonly string[] => text.match(code) ?? []
    expect(shown(read(`${page}.ko`))).toEqual(shown(read(page)))
    expect(shown(read(page)).length).toBeGreaterThan(2)
    expect(rowsOf(read(`${page}.ko`))).toEqual(rowsOf(read(page)))
    const headings = (text: string): number => text.replaceAll(code, '').match(/^#+ /gm)?.length ?? 0
    expect(headings(read(`${page}.ko`))).toBe(headings(read(page)))
    const pages = (text: string): readonly string[] =>
      [...text.matchAll(/\]\(([\w./-]+)/g)].map(([, to = '']) => to.replace('.ko.md', '.md')).toSorted()
    expect(pages(read(`${page}.ko`))).toEqual(pages(read(page)))
  },
)

test.each([
  'alerts',
  'cli',
  'dead-letters',
  'deploying',
  'proof',
  'errors',
  'reliability',
  'kafka',
  'log-stream',
  'operating',
  'publishing',
  'subscriptions',
  'upgrading',
])('%s leads to its Korean page', (page) => {
  expect(read(page)).toContain(`[한국어](${page}.ko.md)`)
})
