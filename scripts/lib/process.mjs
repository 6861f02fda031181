// Runs other programs.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'

const onWindows = process.platform === 'win32'

/** Runs a program in this terminal and resolves to its exit code. Ctrl-C and SIGTERM are left to the program. */
export function run(program, args) {
  const child = spawn(program, args, { stdio: 'inherit', shell: onWindows })
  const forward = (signal) => child.kill(signal)
  // The terminal sends Ctrl-C to the program as well: here it only must not end the wait for it.
  const ignore = () => undefined
  process.on('SIGTERM', forward)
  process.on('SIGINT', ignore)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      process.off('SIGTERM', forward)
      process.off('SIGINT', ignore)
      resolve(code ?? 128 + (constants.signals[signal] ?? 0))
    })
  })
}

/** Runs a program quietly and resolves to its exit code and all that it printed. */
export function capture(program, args) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], shell: onWindows })
  const printed = []
  child.stdout.on('data', (chunk) => printed.push(chunk))
  child.stderr.on('data', (chunk) => printed.push(chunk))
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ code: 1, output: String(error) }))
    child.once('close', (code) => resolve({ code: code ?? 1, output: Buffer.concat(printed).toString() }))
  })
}

/** A program of an installed development dependency. */
export function tool(name) {
  return `node_modules/.bin/${name}`
}
