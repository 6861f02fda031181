import { type ChildProcessByStdio, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { inject } from 'vitest'
import { PATIENCE_MS } from './patience-ms.ts'

export { isRunning } from './is-running.ts'

/** A program of test/programs in a process of its own, to be killed without harm to the test. */
export type Program = ChildProcessByStdio<Writable, Readable, null>

/** Where the compiled sources and programs are; the global setup of the test run makes them. */
export const compiledDirectory: string = inject('compiledDirectory')

/** How to run a program. */
export interface ProgramOptions extends SpawnOptions {
  /**
   * Where the compiled sources are.
   * @default the run's own
   */
  readonly directory?: string
}

/** Runs `test/programs/<name>.ts` with plain Node. */
export function startProgram(name: string, args: readonly string[], options: ProgramOptions = {}): Program {
  const { directory = compiledDirectory, ...rest } = options
  const file = join(directory, 'test', 'programs', `${name}.js`)
  return spawn(process.execPath, [file, ...args], { ...rest, stdio: ['pipe', 'pipe', 'inherit'] })
}

/** The first line a program prints, as JSON. Fails when it ends without a word. */
export async function firstLine<T>(program: Program): Promise<T> {
  for await (const line of createInterface({ input: program.stdout })) return JSON.parse(line) as T
  throw new Error('The program ended without printing anything')
}

/** Kills a program with SIGKILL and waits for its end. */
export async function killProgram(program: Program): Promise<void> {
  if (program.exitCode !== null || program.signalCode !== null) return
  const exit = once(program, 'exit')
  program.kill('SIGKILL')
  await exit
}

/** Waits until the condition holds; fails after the time limit, naming what was waited for. */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  timeoutMs = PATIENCE_MS,
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`Waited ${timeoutMs} ms in vain: ${what}`)
    await sleep(20)
  }
}
