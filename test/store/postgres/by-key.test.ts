import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const WHY =
  'Deliveries are found, locked and updated by (id, subscription_id): where outbox_delivery is partitioned, ' +
  'rows of two partitions may have one ctid, and such a statement would change rows that it did not mean'

const directory = fileURLToPath(new URL('../../../src/store/postgres/', import.meta.url))

/** Comments may speak of it. */
function withoutComments(text: string): string {
  return text
    .replaceAll(/\/\*[^]*?\*\//g, '')
    .replaceAll(/^\s*\/\/.*$/gm, '')
    .replaceAll(/--.*$/gm, '')
}

/** The table that is called so nearest to this place, before or after it. */
function tableOf(alias: string, text: string, place: number): string | undefined {
  const named = [...text.matchAll(new RegExp(`\\.(outbox_\\w+)\\s+(?:as\\s+)?${alias}\\b`, 'g'))]
  const distance = ({ index }: RegExpMatchArray): number => Math.abs((index ?? 0) - place)
  return named.toSorted((a, b) => distance(a) - distance(b))[0]?.[1]
}

/** The lines that go by ctid and not evidently by that of a table which is never partitioned. */
function deliveriesByCtid(source: string): readonly string[] {
  const text = withoutComments(source)
  const lines = [...text.matchAll(/(?:\b(\w+)\.)?\bctid\b/gi)]
    .filter(({ 1: alias, index }) => {
      const table = alias === undefined ? undefined : tableOf(alias, text, index)
      return table === undefined || table === 'outbox_delivery'
    })
    .map(({ index }) => lineAt(text, index))
  return [...new Set(lines)]
}

function lineAt(text: string, place: number): string {
  const end = text.indexOf('\n', place)
  return text.slice(text.lastIndexOf('\n', place) + 1, end < 0 ? undefined : end).trim()
}

describe('statements on deliveries', () => {
  const sources = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.(?:ts|sql)$/.test(name),
  )

  test('go by the primary key, and never by ctid', () => {
    expect(sources).toContain('claim.ts')
    const found = sources.flatMap((name) =>
      deliveriesByCtid(readFileSync(directory + name, 'utf8')).map((line) => `${name}: ${line}`),
    )
    expect(found, WHY).toEqual([])
  })
})

describe('the rule above', () => {
  const S = '"app"'

  test.each([
    ['a row found', `select d.ctid from ${S}.outbox_delivery d where d.fresh`],
    ['a row found under another name', `select d.ctid as tid, d.xmin from {schema}.outbox_delivery d`],
    ['a row updated', `update ${S}.outbox_delivery d\n   set held = true\n where d.ctid = any ($1::tid[])`],
    ['a row of no named table', 'delete from outbox_delivery where ctid = $1'],
    [
      'a delivery on a line with a lane',
      `select l.ctid from ${S}.outbox_lane l where l.lane in (select 1 from ${S}.outbox_delivery d where d.ctid = $1)`,
    ],
    ['upper case', `SELECT d.CTID FROM ${S}.outbox_delivery d`],
    [
      'a delivery beside a lane of the same name',
      `update ${S}.outbox_lane l set until = now() where l.ctid = $1;
       -- another statement, which is not short at all
       select l.ctid from {schema}.outbox_delivery l`,
    ],
  ])('sees %s', (_what, text) => {
    expect(deliveriesByCtid(text)).toHaveLength(1)
  })

  test.each([
    ['a lane', `update ${S}.outbox_lane l set owner = null where l.ctid = any ($1::tid[])`],
    ['a lease', 'select d.ctid from {schema}.outbox_lease d; select d.id from {schema}.outbox_delivery d'],
    ['a comment', `// not by d.ctid\n-- nor ctid\nselect d.id from ${S}.outbox_delivery d`],
  ])('passes %s', (_what, text) => {
    expect(deliveriesByCtid(text)).toEqual([])
  })
})
