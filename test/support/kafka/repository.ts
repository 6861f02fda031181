import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A file of the folder infra/, found from the sources and from what is compiled of them. */
export function infraFile(name: string): string {
  let directory = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(directory, 'infra', 'pom.xml'))) {
    const parent = dirname(directory)
    if (parent === directory) throw new Error('infra/pom.xml is in no directory above this file')
    directory = parent
  }
  return join(directory, 'infra', name)
}
