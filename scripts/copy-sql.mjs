// Copies every .sql file under src next to the compiled files: node scripts/copy-sql.mjs <target of src>
import { cp, mkdir, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../src', import.meta.url))
const target = process.argv[2]
if (!target) throw new Error('usage: node scripts/copy-sql.mjs <directory src is compiled to>')

for (const name of await readdir(source, { recursive: true })) {
  if (!name.endsWith('.sql')) continue
  const copy = join(target, name)
  await mkdir(dirname(copy), { recursive: true })
  await cp(join(source, name), copy)
}
