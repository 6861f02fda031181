import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { resolveDatabase } from '../../src/testing/index.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The server that all tests of a run share, each in schemas of its own. */
    databaseUrl: string
  }
}

/** Compiles what tests run in processes of their own, and starts one server for the whole run. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  compilePrograms()
  const database = await resolveDatabase({
    embedded: { fsync: false, settings: { max_connections: 200, synchronous_commit: 'on' } },
  })
  project.provide('databaseUrl', database.url)
  return async () => await database.stop()
}

/** Type errors are not reported here: the type check is a step of its own, and tsc writes its output despite them. */
function compilePrograms(): void {
  const run = fileURLToPath(new URL('../../scripts/run.mjs', import.meta.url))
  spawnSync(process.execPath, [run, 'build:dev'], { stdio: 'ignore' })
}
