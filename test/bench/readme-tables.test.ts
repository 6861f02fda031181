import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readmeTables, withTables } from '../../bench/support/readme-tables.ts'
import type { FiguresFile } from '../../bench/support/results-file.ts'

const figures = (name: string): FiguresFile =>
  JSON.parse(readFileSync(`bench/results/${name}.json`, 'utf8')) as FiguresFile

test('bench/README.md shows what is recorded: npm run bench -- report writes it', () => {
  const page = readFileSync('bench/README.md', 'utf8')
  expect(withTables(page, readmeTables(figures('core'), figures('stream')))).toBe(page)
})

test('a table without a place is refused', () => {
  expect(() => withTables('<!-- a -->\n\nold\n\n<!-- end -->\n', new Map([['b', 'new']]))).toThrow(
    'The page has no place for a table: <!-- b -->',
  )
})
