// npm run bench -- report
// Writes the tables of bench/README.md anew, from what is recorded in bench/results.
import { readFile, writeFile } from 'node:fs/promises'
import { print } from './support/progress.ts'
import { readmeTables, withTables } from './support/readme-tables.ts'
import type { FiguresFile } from './support/results-file.ts'

const PAGE = 'bench/README.md'

const tables = readmeTables(
  await figures('bench/results/core.json'),
  await figures('bench/results/stream.json'),
)
await writeFile(PAGE, withTables(await readFile(PAGE, 'utf8'), tables))
print(`${tables.size} tables written to ${PAGE}`)

async function figures(path: string): Promise<FiguresFile> {
  return JSON.parse(await readFile(path, 'utf8')) as FiguresFile
}
