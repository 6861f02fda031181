import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { compiledDirectory } from '../support/program.ts'

/** Makes every import of OpenTelemetry fail, as where it is not installed. */
const HOOK = `
  export async function resolve(name, context, next) {
    if (name.startsWith('@opentelemetry/')) throw new Error('not installed: ' + name)
    return next(name, context)
  }`

/** Imports a compiled file in a process of its own, without OpenTelemetry. */
async function importWithout(file: string): Promise<string> {
  const url = pathToFileURL(join(compiledDirectory, 'src', file)).href
  const hook = `data:text/javascript,${encodeURIComponent(HOOK)}`
  const program = `
    import { register } from 'node:module'
    register(${JSON.stringify(hook)})
    console.log(Object.keys(await import(${JSON.stringify(url)})).length > 0 ? 'imported' : 'empty')`
  const run = promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program])
  const { stdout } = await run
  return stdout.trim()
}

test.each(['index.js', 'store/postgres/index.js', 'testing/index.js'])(
  'where OpenTelemetry is not installed, %s works all the same',
  async (file) => {
    expect(await importWithout(file)).toBe('imported')
  },
)

test('only the entry for traces needs it', async () => {
  await expect(importWithout('observe/otel/index.js')).rejects.toThrow('not installed: @opentelemetry/api')
})
