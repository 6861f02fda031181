import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { findProgram } from '../find-program.ts'
import { isRunning } from '../is-running.ts'
import { available } from '../servers.ts'
import { infraFile } from './repository.ts'

const execute = promisify(execFile)

/** Where the programs are: Kafka and Kafka Connect in `libs`, the connectors in the others. */
export interface Jars {
  readonly libs: string
  readonly plugins: string
  readonly mariadbPlugins: string
}

/** Whether a suite can start Kafka and Kafka Connect: Java is there, and the jars are or can be fetched. */
export function kafkaAvailable(): boolean {
  const isThere = findProgram('java') !== null && (existsSync(cache()) || findProgram('mvn') !== null)
  return available('Kafka (Java 17 and Maven to fetch it)', isThere)
}

/** Fetches what infra/pom.xml names, once for each content of that file; about 100 MB. */
export async function ensureJars(): Promise<Jars> {
  const directory = cache()
  needs('java', 'Java 17 or later')
  await mkdir(dirname(directory), { recursive: true })
  if (!existsSync(directory)) {
    await withLock(`${directory}.lock`, async () => {
      if (!existsSync(directory)) await download(directory)
    })
  }
  return {
    libs: join(directory, 'libs'),
    plugins: join(directory, 'plugins'),
    mariadbPlugins: join(directory, 'mariadb-plugins'),
  }
}

function needs(program: string, what: string): void {
  if (findProgram(program) === null)
    throw new Error(`Kafka needs ${what}, and there is no ${program} in the path.`)
}

function cache(): string {
  const hash = createHash('sha256')
    .update(readFileSync(infraFile('pom.xml')))
    .digest('hex')
  const base = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache')
  return join(base, 'commitpost', `infra-${hash.slice(0, 16)}`)
}

/** Into a directory beside it, which gets the name that is looked for once it is whole. */
async function download(directory: string): Promise<void> {
  needs('mvn', 'Maven')
  await sweepPartial(directory)
  const partial = `${directory}.partial-${process.pid}`
  const goals = ['-B', '-q', '-f', infraFile('pom.xml'), 'package', `-Dstack=${partial}`]
  try {
    await execute('mvn', goals, { maxBuffer: 64 * 1024 * 1024 })
    await rename(partial, directory)
  } catch (error) {
    if (existsSync(directory)) return // another process was quicker
    const said = error instanceof Error && 'stdout' in error ? String(error.stdout).trim() : ''
    throw new Error(
      `Maven could not fetch what infra/pom.xml names: ${said.slice(0, 2000) || String(error)}`,
      {
        cause: error,
      },
    )
  } finally {
    await rm(partial, { recursive: true, force: true })
  }
}

/** What processes left behind that died while they fetched. */
async function sweepPartial(directory: string): Promise<void> {
  for (const name of await readdir(dirname(directory))) {
    const owner = /\.partial-(\d+)$/.exec(name)?.[1]
    if (owner === undefined || isRunning(Number(owner))) continue
    await rm(join(dirname(directory), name), { recursive: true, force: true })
  }
}

/** One process fetches, the others wait for it; the lock of one that died is taken over. */
async function withLock(file: string, work: () => Promise<void>): Promise<void> {
  while (!(await takeLock(file))) {
    const owner = Number(await readFile(file, 'utf8').catch(() => '0'))
    // Zero: just being written, or gone.
    if (owner > 0 && !isRunning(owner)) await rm(file, { force: true })
    await sleep(200)
  }
  try {
    await work()
  } finally {
    await rm(file, { force: true })
  }
}

async function takeLock(file: string): Promise<boolean> {
  try {
    const handle = await open(file, 'wx')
    await handle.writeFile(String(process.pid))
    await handle.close()
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}
