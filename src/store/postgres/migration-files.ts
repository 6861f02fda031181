import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { CommitpostError } from '../../runtime/errors.ts'
import { type QuotedSchema, quoteLiteral } from './identifiers.ts'

/** One step of the schema, as shipped: text with placeholders, the same for every schema name. */
export interface Migration {
  readonly version: number
  /** The file's name without number and ending: `core`. */
  readonly name: string
  readonly sql: string
  /** SHA-256 of the text, by which a step that was changed after it had been applied is found out. */
  readonly checksum: string
}

const DIRECTORY = new URL('./migrations/', import.meta.url)
const MIGRATION_FILE = /^(?<version>\d{4})_(?<name>[a-z0-9_-]+)\.sql$/

/** All steps this version of the code knows, in order. */
export async function readMigrations(): Promise<readonly Migration[]> {
  const files = await readingSqlFiles(() => readdir(DIRECTORY))
  const migrations: Migration[] = []
  for (const file of files.toSorted()) {
    const match = MIGRATION_FILE.exec(file)
    if (match === null) continue
    const sql = await readSqlFile(file)
    migrations.push({
      version: Number(match.groups?.['version']),
      name: match.groups?.['name'] as string,
      sql,
      checksum: createHash('sha256').update(sql).digest('hex'),
    })
  }
  return migrations
}

/** One file of the directory, with line ends that do not depend on how the repository was checked out. */
export async function readSqlFile(file: string): Promise<string> {
  const text = await readingSqlFiles(() => readFile(new URL(file, DIRECTORY), 'utf8'))
  return text.replaceAll('\r\n', '\n')
}

/**
 * Puts names in the place of `{schema}` and `{schema:literal}`. Lines of comment stay as they are: a name with a line
 * end in it would end the comment.
 */
export function fillIn(sql: string, schema: QuotedSchema): string {
  return fillInNames(sql, { schema })
}

/** Puts quoted identifiers in the place of `{name}`, and SQL literals of them in the place of `{name:literal}`. */
export function fillInNames(sql: string, quoted: Readonly<Record<string, string>>): string {
  const fillLine = (line: string): string =>
    line.replaceAll(/\{(\w+)(:literal)?\}/g, (placeholder, name: string, literal?: string) => {
      const value = quoted[name]
      if (value === undefined) return placeholder
      return literal === undefined ? value : quoteLiteral(value)
    })
  return sql
    .split('\n')
    .map((line) => (line.trimStart().startsWith('--') ? line : fillLine(line)))
    .join('\n')
}

async function readingSqlFiles<Result>(read: () => Promise<Result>): Promise<Result> {
  try {
    return await read()
  } catch (cause) {
    throw new CommitpostError(
      'INTERNAL',
      `The SQL files of commitpost are not at ${DIRECTORY.href}. A bundler leaves them out: keep the package ` +
        'external, or apply the output of `commitpost migrate sql` with a tool of your own.',
      { cause },
    )
  }
}
