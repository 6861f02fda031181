import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { benchDirectory, peerNode } from './peers.ts'
import type { FromProgram, ToProgram } from './protocol.ts'

/** A benchmark program in a process of its own. */
export interface Program<Report> {
  /** Resolves when it has everything in place and waits for the start. */
  readonly ready: Promise<void>
  /** What it did. Rejects when it ends without saying. */
  readonly report: Promise<Report>
  /** Says something to it; what has ended hears nothing any more. */
  tell(message: ToProgram): void
  onProgress(listener: (value: number) => void): void
}

/** Starts `bench/programs/<name>` on the Node that all contenders run on. */
export function startProgram<Report>(name: string, task: unknown): Program<Report> {
  const script = fileURLToPath(new URL(`../programs/${name}.js`, import.meta.url))
  const child = spawn(peerNode(), [script, JSON.stringify(task)], {
    cwd: benchDirectory(),
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, NO_LOG_SUCCESS: '1' },
  })
  const report = reportOf<Report>(child, name)
  // Whoever waits for `ready` alone must hear of a program that died first.
  report.catch(() => undefined)
  const ready = new Promise<void>((resolve, reject) => {
    onMessage(child, (message) => message.type === 'ready' && resolve())
    report.catch(reject)
  })
  ready.catch(() => undefined)
  return {
    ready,
    report,
    // Without the callback a message to a program that is just ending would be an unhandled error.
    tell: (message) => void child.send(message, () => undefined),
    onProgress: (listener) => {
      onMessage(child, (message) => message.type === 'progress' && listener(message.value))
    },
  }
}

/** Starts a program, lets it go at once and returns its report. */
export async function runToReport<Report>(name: string, task: unknown): Promise<Report> {
  return await startProgram<Report>(name, task).report
}

function reportOf<Report>(child: ChildProcess, name: string): Promise<Report> {
  return new Promise((resolve, reject) => {
    let report: { readonly value: Report } | undefined
    onMessage(child, (message) => {
      if (message.type === 'report') report = { value: message.report as Report }
    })
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      if (report !== undefined && code === 0) resolve(report.value)
      else reject(new Error(`The program ${name} ended with ${code ?? signal} and without a report`))
    })
  })
}

function onMessage(child: ChildProcess, listener: (message: FromProgram) => void): void {
  child.on('message', (message) => listener(message as FromProgram))
}
