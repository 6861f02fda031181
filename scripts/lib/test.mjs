// The checks and the tests, one after the other, with one line for each and a count at the end.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from './build.mjs'
import { capture, run, tool } from './process.mjs'

const sources = ['src', 'test', 'bench', 'examples', 'scripts', 'vitest.config.ts']

const staticChecks = [
  ['format and import order', () => capture(tool('biome'), ['check', '.'])],
  ['lint', () => capture(tool('oxlint'), ['--type-aware', '--deny-warnings', ...sources])],
  ['types', () => capture(tool('tsc'), ['-p', 'tsconfig.json'])],
  ['import rules', () => capture(tool('depcruise'), ['src'])],
  ['unused code', () => capture(tool('knip'), [])],
]

const packageChecks = [
  ['build', () => outcomeOf(build)],
  ['package contents', () => capture(tool('publint'), ['--strict'])],
  ['package types', () => capture(tool('attw'), ['--pack', '.', '--profile', 'esm-only'])],
]

/** Everything; with arguments only the tests, which get them as filters. */
export async function test(args) {
  const checks = args.length === 0 ? await runChecks([...staticChecks, ...packageChecks]) : none
  return report(add(checks, await runTests(args)))
}

/** The checks that need no running server. */
export async function check() {
  return report(await runChecks(staticChecks))
}

/** What a user would install. */
export async function checkPackage() {
  return report(await runChecks(packageChecks))
}

const none = { passed: 0, failed: 0 }

async function runChecks(checks) {
  let total = none
  for (const [name, start] of checks) total = add(total, await runCheck(name, start))
  return total
}

async function runCheck(name, start) {
  const began = performance.now()
  const { code, output } = await start()
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  if (code === 0) {
    console.log(`ok  ${name} (${seconds} s)`)
    return { passed: 1, failed: 0 }
  }
  console.log(`FAILED  ${name} (${seconds} s)\n${output.trimEnd()}\n`)
  return { passed: 0, failed: 1 }
}

async function runTests(args) {
  const directory = await mkdtemp(join(tmpdir(), 'commitpost-test-'))
  const file = join(directory, 'report.json')
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`]
  try {
    const code = await run(tool('vitest'), ['run', ...reporters, ...args])
    const result = JSON.parse(await readFile(file, 'utf8').catch(() => '{}'))
    return countTests(result, code)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** A run that failed without a failed test (a file that does not load, an unhandled rejection, no tests) counts as one. */
function countTests(result, code) {
  const passed = result.numPassedTests ?? 0
  const failed = result.numFailedTests ?? 0
  const broken = failed === 0 && (code !== 0 || passed === 0)
  return { passed, failed: broken ? 1 : failed }
}

async function outcomeOf(step) {
  try {
    await step()
    return { code: 0, output: '' }
  } catch (error) {
    return { code: 1, output: error.message }
  }
}

function add(one, other) {
  return { passed: one.passed + other.passed, failed: one.failed + other.failed }
}

function report({ passed, failed }) {
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}
