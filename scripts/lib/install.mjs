// Installs the development dependencies when they are missing or older than the lock file.
import { createHash } from 'node:crypto'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { capture } from './process.mjs'

/**
 * Resolves when the node_modules of a package agree with its package-lock.json; rejects with npm's output when that
 * cannot be.
 */
export async function ensureInstalled(directory = '.') {
  const stamp = join(directory, 'node_modules/.commitpost-lock')
  const wanted = createHash('sha256')
    .update(await readFile(join(directory, 'package-lock.json')))
    .digest('hex')
  if ((await readFile(stamp, 'utf8').catch(() => '')) === wanted) return
  if (!(await installedByHand(directory))) {
    const what = directory === '.' ? 'development dependencies' : `dependencies of ${directory}`
    console.log(`Installing the ${what} (npm ci), once ...`)
    const quietly = ['--ignore-scripts', '--no-audit', '--no-fund']
    const { code, output } = await capture('npm', ['ci', '--prefix', directory, ...quietly])
    if (code !== 0) throw new Error(`npm ci failed:\n${output}`)
  }
  await writeFile(stamp, wanted)
}

/** npm writes a lock file of its own into node_modules at the end of each install. */
async function installedByHand(directory) {
  const written = async (path) => (await stat(join(directory, path)).catch(() => undefined))?.mtimeMs
  const installed = await written('node_modules/.package-lock.json')
  return installed !== undefined && installed >= (await written('package-lock.json'))
}
