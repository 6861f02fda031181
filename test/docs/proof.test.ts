import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { reasonTexts } from '../../src/inspect/reason-texts.ts'

test('docs/proof.md tells every reason that why gives', () => {
  const page = readFileSync(new URL('../../docs/proof.md', import.meta.url), 'utf8')
  const [, table = ''] = /^\| reason [\s\S]*?\n((?:\|.*\n)+)/m.exec(page) ?? []
  const told = [...table.matchAll(/^\| `([a-z-]+)`/gm)].map(([, kind]) => kind as string)
  expect(told.toSorted()).toEqual(Object.keys(reasonTexts).toSorted())
})
