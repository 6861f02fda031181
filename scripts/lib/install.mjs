// Installs the development dependencies when they are missing or older than the lock file.
import { createHash } from 'node:crypto'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { capture } from './process.mjs'

const stamp = 'node_modules/.commitpost-lock'

/** Resolves when node_modules agrees with package-lock.json; rejects with npm's output when that cannot be. */
export async function ensureInstalled() {
  const wanted = createHash('sha256')
    .update(await readFile('package-lock.json'))
    .digest('hex')
  if ((await readFile(stamp, 'utf8').catch(() => '')) === wanted) return
  if (!(await installedByHand())) {
    console.log('Installing the development dependencies (npm ci), once ...')
    const { code, output } = await capture('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'])
    if (code !== 0) throw new Error(`npm ci failed:\n${output}`)
  }
  await writeFile(stamp, wanted)
}

/** npm writes a lock file of its own into node_modules at the end of each install. */
async function installedByHand() {
  const written = async (path) => (await stat(path).catch(() => undefined))?.mtimeMs
  const installed = await written('node_modules/.package-lock.json')
  return installed !== undefined && installed >= (await written('package-lock.json'))
}
