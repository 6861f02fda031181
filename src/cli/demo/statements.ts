import { readFile } from 'node:fs/promises'

/** The statements of shop.sql by name, ready to run. */
export interface ShopStatements {
  readonly createTables: string
  readonly insertOrder: string
  readonly updateOrder: string
  readonly appendLedger: string
  readonly auditLedger: string
}

const NAMES: readonly (keyof ShopStatements)[] = [
  'createTables',
  'insertOrder',
  'updateOrder',
  'appendLedger',
  'auditLedger',
]

/** Reads shop.sql. `quotedSchema` takes the place of `{schema}`. */
export async function readShopStatements(quotedSchema: string): Promise<ShopStatements> {
  const sections = (await readFile(new URL('./shop.sql', import.meta.url), 'utf8')).split(/^-- name: /m)
  const byName = new Map(
    sections.slice(1).map((section) => {
      const end = section.indexOf('\n')
      return [section.slice(0, end).trim(), section.slice(end + 1).trim()] as const
    }),
  )
  const statements = NAMES.map((name) => {
    const text = byName.get(name)
    if (text === undefined) throw new Error(`shop.sql has no statement "${name}"`)
    return [name, text.replaceAll('{schema}', () => quotedSchema)] as const
  })
  return Object.fromEntries(statements) as unknown as ShopStatements
}
