// The one entry behind the npm scripts: node scripts/run.mjs <task> [arguments].
// It has no dependencies, so that every task works as the first command on a fresh clone.
import { fileURLToPath } from 'node:url'
import { build, buildDev } from './lib/build.mjs'
import { ensureInstalled } from './lib/install.mjs'
import { run } from './lib/process.mjs'
import { check, checkPackage, test } from './lib/test.mjs'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))

const tasks = {
  start: async (args) => {
    await build()
    return run(process.execPath, ['dist/cli/main.js', 'demo', ...args])
  },
  bench: async ([name = 'drain', ...args]) => {
    await buildDev()
    return run(process.execPath, [`.build/bench/${name}.js`, ...args])
  },
  test,
  check,
  build,
  'build:dev': ([directory]) => buildDev(directory),
  'package:check': checkPackage,
  format: () => run('node_modules/.bin/biome', ['check', '--write', '.']),
}

const [name, ...args] = process.argv.slice(2)
const task = Object.hasOwn(tasks, name ?? '') ? tasks[name] : undefined
if (task === undefined) {
  console.error(`usage: node scripts/run.mjs ${Object.keys(tasks).join(' | ')}`)
  process.exit(2)
}
try {
  await ensureInstalled()
  process.exitCode = await task(args)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
