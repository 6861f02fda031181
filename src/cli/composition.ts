import { readFile } from 'node:fs/promises'
import type { Services } from './services.ts'

/** The services of the real program. Each is loaded when a command asks for it: most need one, some none. */
export function createServices(): Services {
  return {
    openDatabase: async (target) => (await import('./database.ts')).openDatabase(target),
    migrationSql: async (options) =>
      (await import('../store/postgres/migration-sql.ts')).migrationSql(options),
    latestVersion: async () =>
      (await (await import('../store/postgres/migration-files.ts')).readMigrations()).at(-1)?.version ?? 0,
    partitionSql: async (options) =>
      (await import('../store/postgres/partition-steps.ts')).partitionSql(options),
    rolesSql: async (options) => (await import('../store/postgres/roles.ts')).rolesSql(options),
    openDemoDatabase: async (target) => (await import('./demo/composition.ts')).openDemoDatabase(target),
    packageVersion,
  }
}

/** The nearest package.json above this file that is our own, wherever the file was compiled to. */
async function packageVersion(): Promise<string> {
  for (let directory = new URL('.', import.meta.url); ; directory = new URL('..', directory)) {
    const manifest = await readManifest(new URL('package.json', directory))
    if (manifest?.name === 'commitpost') return manifest.version
    if (directory.pathname === new URL('..', directory).pathname) return '0.0.0'
  }
}

interface Manifest {
  readonly name: string
  readonly version: string
}

async function readManifest(file: URL): Promise<Manifest | null> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Manifest
  } catch {
    return null // not here, perhaps further up
  }
}
