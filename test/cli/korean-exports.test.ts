import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { exportDetailInKorean } from '../../src/cli/messages/export-details-ko.ts'
import { expectKorean } from './korean.ts'

const SOURCES = new URL('../../src/retain/', import.meta.url)

/** Every detail that a fault of an export is made with, as the sources have it, with a value for each gap. */
async function details(): Promise<readonly string[]> {
  const files = ['verify-export.ts', 'read-export.ts']
  expect(await readdir(SOURCES)).toEqual(expect.arrayContaining(files))
  const texts = await Promise.all(files.map((name) => readFile(new URL(name, SOURCES), 'utf8')))
  const joined = texts.join('\n').replaceAll(/['`] \+\s+['`]/g, '')
  const assigned = [...joined.matchAll(/const detail =\s*(['`])(.+?)\1\n/g)].map(([, , text = '']) => text)
  const direct = [...joined.matchAll(/new ExportFault\([^()]*?, (['`])([^'`]+)\1\)/g)].map(
    ([, , text = '']) => text,
  )
  return [...assigned, ...direct].map((text) => text.replaceAll('\\`', '`').replaceAll(/\$\{[^}]+\}/g, '7'))
}

test('whatever is wrong with an export is told in Korean', async () => {
  const all = await details()
  expect(all.length).toBeGreaterThanOrEqual(15)
  for (const detail of all) expectKorean(exportDetailInKorean(detail))
})

test('with the numbers and names of the English sentence, and as it is where its form is not known', () => {
  expect(exportDetailInKorean('it has 10 of its 20 bytes: its end is missing')).toBe(
    '20바이트 중 10바이트만 있습니다. 끝이 없습니다.',
  )
  expect(exportDetailInKorean('the dog ate it')).toBe('the dog ate it')
})
