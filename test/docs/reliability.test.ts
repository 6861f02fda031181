import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { countAnomalies, judge } from '../chaos/checker/judge.ts'
import { FAULT_NAMES } from '../chaos/plan.ts'

const fileUrl = (path: string): URL => new URL(`../../${path}`, import.meta.url)
const read = (path: string): string => readFileSync(fileUrl(path), 'utf8')
const testsNamedIn = (text: string): readonly string[] =>
  [...text.matchAll(/`(test\/[^`]+\.test\.ts)`/g)].map(([, path]) => path as string)

/** The rows of the table of promises: a promise, and what holds it. */
function promisesIn(text: string): readonly string[] {
  const [, table = ''] = /\n## [^\n]+\n([\s\S]*?)\n## /.exec(text) ?? []
  return table.split('\n').filter((line) => line.startsWith('|') && line.includes('**'))
}

describe.each(['docs/reliability.md', 'docs/reliability.ko.md'])('%s', (path) => {
  test('names tests that exist, at least one for each promise', () => {
    const named = testsNamedIn(read(path))
    expect(named.filter((file) => !existsSync(fileUrl(file)))).toEqual([])
    const promises = promisesIn(read(path))
    expect(promises.length).toBeGreaterThanOrEqual(10)
    expect(promises.filter((row) => testsNamedIn(row).length === 0)).toEqual([])
  })
})

describe('the reliability page', () => {
  test('promises the same in both languages', () => {
    const held = (path: string): readonly string[] => promisesIn(read(path)).flatMap(testsNamedIn)
    expect(held('docs/reliability.ko.md')).toEqual(held('docs/reliability.md'))
  })

  test('tells of every fault and of every anomaly', () => {
    const text = read('docs/reliability.md')
    expect(FAULT_NAMES.filter((name) => !text.includes(`\`${name}\``))).toEqual([])
    const anomalies = Object.keys(countAnomalies(judge([], { leaseMs: 1_000 })))
    const [, table = ''] = /\n\| anomaly[^\n]*\n([\s\S]*?)\n\n/.exec(text) ?? []
    const told = table
      .split('\n')
      .flatMap((row) => (row.split('|')[1] ?? '').split(',').map((name) => name.trim()))
    expect(anomalies.filter((name) => !told.includes(name))).toEqual([])
  })
})
