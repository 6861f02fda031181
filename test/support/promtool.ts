import { execFile } from 'node:child_process'
import { findProgram } from './find-program.ts'

/** What a run of promtool said. */
export interface PromtoolResult {
  readonly code: number
  readonly output: string
}

/** The promtool of this machine, or null if there is none. Debian has it in the package prometheus. */
export function findPromtool(): string | null {
  return findProgram('promtool')
}

/** Runs promtool to its end, with this on its standard input. */
export function promtool(args: readonly string[], input = ''): Promise<PromtoolResult> {
  return new Promise((resolve) => {
    const child = execFile(findPromtool() ?? 'promtool', [...args], (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
      resolve({ code, output: `${stdout}${stderr}` })
    })
    child.stdin?.end(input)
  })
}
