import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { resolveDatabase } from '../../src/testing/index.ts'
import { isRunning } from './is-running.ts'
import { directoryInMemory, sweepMemory } from './memory-directory.ts'
import { dropTemplate, makePartitionedTemplate, makeTemplate } from './template-database.ts'
import { TEST_SERVER } from './test-server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The server that all tests of a run share, each in schemas of its own. */
    databaseUrl: string
    /** A database of it with the outbox's tables, to be copied. */
    templateDatabase: string
    /** The same in the partitioned layout. */
    partitionedTemplate: string
    /** Where the compiled sources and programs of this run are. */
    compiledDirectory: string
  }
}

const root = fileURLToPath(new URL('../../', import.meta.url))
const builds = join(root, '.build')

/** Compiles what tests run in processes of their own, and starts one server for the whole run. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  await sweepBuilds()
  await sweepMemory()
  const compiling = compilePrograms()
  const dataDir = await directoryInMemory()
  const database = await resolveDatabase({
    embedded: { ...TEST_SERVER, ...(dataDir === undefined ? {} : { dataDir }) },
  })
  const template = await makeTemplate(database.url)
  const partitioned = await makePartitionedTemplate(database.url, template)
  const compiled = await compiling
  project.provide('databaseUrl', database.url)
  project.provide('templateDatabase', template)
  project.provide('partitionedTemplate', partitioned)
  project.provide('compiledDirectory', compiled)
  return async () => {
    await dropTemplate(database.url, partitioned)
    await dropTemplate(database.url, template)
    await database.stop()
    if (dataDir !== undefined) await rm(dataDir, { recursive: true, force: true })
    await rm(compiled, { recursive: true, force: true })
  }
}

/**
 * Into a directory of this run: another run at the same time must not write files that this one's programs read. Type
 * errors are not reported here: the type check is a step of its own, and tsc writes its output despite them.
 */
async function compilePrograms(): Promise<string> {
  const directory = join(builds, `run-${process.pid}`)
  const build = [join(root, 'scripts', 'run.mjs'), 'build:dev', directory]
  await once(spawn(process.execPath, build, { stdio: 'ignore' }), 'exit')
  return directory
}

/** What runs left behind that were killed. */
async function sweepBuilds(): Promise<void> {
  await mkdir(builds, { recursive: true })
  for (const name of await readdir(builds)) {
    const owner = /^run-(\d+)$/.exec(name)?.[1]
    if (owner === undefined || isRunning(Number(owner))) continue
    await rm(join(builds, name), { recursive: true, force: true })
  }
}
