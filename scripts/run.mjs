// The one entry behind the npm scripts: node scripts/run.mjs <task> [arguments].
// It has no dependencies, so that every task works as the first command on a fresh clone.
import { rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { build, buildDev } from './lib/build.mjs'
import { ensureInstalled } from './lib/install.mjs'
import { run } from './lib/process.mjs'
import { check, checkPackage, test } from './lib/test.mjs'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))

// The others do without the packages of bench/package.json, so that they can be run at once.
const benchesWithPeers = new Set(['core', 'stream'])

const tasks = {
  start: async (args) => {
    await build()
    return run(process.execPath, ['dist/cli/main.js', 'demo', ...args])
  },
  bench: async ([name = 'drain', ...args]) => {
    if (benchesWithPeers.has(name)) await ensureInstalled('bench')
    await buildDev()
    return run(process.execPath, [`.build/bench/${name}.js`, ...args])
  },
  chaos: (args) => runProgram('chaos', args),
  infra: (args) => runProgram('infra', args),
  test,
  check,
  build,
  'build:dev': ([directory]) => buildDev(directory),
  'package:check': checkPackage,
  format: () => run('node_modules/.bin/biome', ['check', '--write', '.']),
}

/** A program of test/programs. */
async function runProgram(name, args) {
  // A directory of its own: another build must not change programs that this run is still going to start.
  const directory = `.build/run-${process.pid}`
  try {
    await buildDev(directory)
    return await run(process.execPath, [`${directory}/test/programs/${name}.js`, ...args])
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
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
