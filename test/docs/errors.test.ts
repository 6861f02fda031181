import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ERROR_CODES, FAILURE_MEANINGS } from '../../src/index.ts'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

/** The codes that have a row of their own in a table. */
const listedIn = (text: string): readonly string[] =>
  [...text.matchAll(/^\| `([A-Z_]+)`/gm)].map(([, code]) => code as string)

/** The codes of the command line are a type; the file that declares it is the list. */
const cliCodes = [...read('src/cli/cli-error.ts').matchAll(/^ {2}\| '([A-Z_]+)'/gm)].map(
  ([, code]) => code as string,
)

test.each(['docs/errors.md', 'docs/errors.ko.md'])('%s explains every code, and no other', (path) => {
  const text = read(path)
  expect(listedIn(text).toSorted()).toEqual([...ERROR_CODES].toSorted())
  for (const code of [...Object.keys(FAILURE_MEANINGS), ...cliCodes]) expect(text).toContain(`\`${code}\``)
})

test('both languages tell the same in the same order', () => {
  expect(listedIn(read('docs/errors.ko.md'))).toEqual(listedIn(read('docs/errors.md')))
})
