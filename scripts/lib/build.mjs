// Compiles with plain tsc and puts the .sql files beside the compiled ones.
import { rm } from 'node:fs/promises'
import { capture, tool } from './process.mjs'

/** src -> dist, from scratch: a file that is gone from src must not be published. */
export async function build() {
  await rm('dist', { recursive: true, force: true })
  return await compile('tsconfig.build.json', 'dist', 'dist')
}

/** src, test programs, benchmarks and examples -> .build, or another directory. */
export async function buildDev(directory = '.build') {
  return await compile('tsconfig.dev.json', directory, `${directory}/src`)
}

async function compile(project, target, sqlTarget) {
  const { code, output } = await capture(tool('tsc'), ['-p', project, '--outDir', target])
  const copied = await capture(process.execPath, ['scripts/copy-sql.mjs', sqlTarget])
  if (code !== 0 || copied.code !== 0) throw new Error(`${output}${copied.output}`.trim())
  return 0
}
