import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { groups } from './groups.ts'
import { answerOf, type Group, titleOf } from './row.ts'

const FILE = new URL('../../docs/hostile-inputs.md', import.meta.url)
const BEGIN = '<!-- generated from test/hostile: WRITE_DOCS=1 npm test -- test/hostile/table.test.ts -->'
const LONGEST_CELL = 160

/** Text in a cell of a Markdown table: on one line, cut, and without what Markdown would obey. */
function cell(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  const cut = line.length > LONGEST_CELL ? `${line.slice(0, LONGEST_CELL)}…` : line
  return `\`${visible(cut).replaceAll('|', '\\|').replaceAll('`', "'").trim()}\``
}

function visible(text: string): string {
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f\ufffd]/g, '\u2423')
}

function sectionOf({ title, rows }: Group): readonly string[] {
  const head = ['what is done', 'what it gets'] as const
  const cells = rows.map((row) => [cell(titleOf(row)), cell(answerOf(row))] as const)
  const [left, right] = [0, 1].map((column) =>
    Math.max(...[head, ...cells].map((row) => row[column]?.length ?? 0)),
  ) as [number, number]
  const line = ([one, other]: readonly [string, string]): string =>
    `| ${one.padEnd(left)} | ${other.padEnd(right)} |`
  return [`## ${title}`, '', line(head), line(['-'.repeat(left), '-'.repeat(right)]), ...cells.map(line), '']
}

const generated = (): string => groups.flatMap(sectionOf).join('\n')

/** As the formatter leaves it or not: the widths of columns do not matter. */
const squeezed = (text: string): string => text.replaceAll(/[ ]+/g, ' ').replaceAll(/-{3,}/g, '---').trim()

test('there are at least 150 hostile inputs, each listed once', () => {
  const titles = groups.flatMap(({ title, rows }) => rows.map((row) => `${title}: ${titleOf(row)}`))
  expect(titles.length).toBeGreaterThanOrEqual(150)
  expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([])
})

test('docs/hostile-inputs.md lists exactly what is proven here', () => {
  const [head = ''] = readFileSync(FILE, 'utf8').split(BEGIN)
  if (process.env['WRITE_DOCS']) writeFileSync(FILE, `${head}${BEGIN}\n\n${generated()}`)
  const [, listed = ''] = readFileSync(FILE, 'utf8').split(BEGIN)
  expect(squeezed(listed)).toBe(squeezed(generated()))
})
