import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

/** What has to go when this process dies: a process to end, a data directory to look for one, directories to remove. */
export interface Ward {
  readonly pid?: number | undefined
  /**
   * What the process is sent first; if it still lives ten seconds later, SIGKILL.
   * @default 'SIGQUIT', on which PostgreSQL ends at once
   */
  readonly signal?: 'SIGQUIT' | 'SIGKILL'
  readonly dataDir?: string | undefined
  readonly remove: readonly string[]
}

/** A small process that outlives this one, however it ends, and clears up after it. */
export interface Watchdog {
  readonly pid: number
  /** Replaces what is to be cleared up. */
  guard(ward: Ward): void
  /** Ends the watchdog without clearing up anything. */
  release(): Promise<void>
}

/**
 * The watchdog's program, given as text so that it runs the same from sources and from the built package.
 * Its standard input closes when the parent is gone, even after SIGKILL. The server's own lock file is consulted as
 * well, for a parent that died between starting the server and saying so; only a file younger than the watchdog counts.
 */
const program = `
const fs = require('node:fs')
const path = require('node:path')
const born = Date.now()
let ward = { remove: [] }
let rest = ''
const wait = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
function alive(pid) {
  try { process.kill(pid, 0) } catch (error) { return error.code === 'EPERM' }
  // A dead process that nobody has collected yet (a container without an init) is dead all the same.
  try { return !/\\) Z /.test(fs.readFileSync('/proc/' + pid + '/stat', 'utf8')) } catch { return true }
}
const send = (pid, signal) => { try { process.kill(pid, signal) } catch {} }
function lockedBy(dataDir) {
  try {
    const file = path.join(dataDir, 'postmaster.pid')
    if (fs.statSync(file).mtimeMs < born) return undefined
    return Number(fs.readFileSync(file, 'utf8').split('\\n')[0]) || undefined
  } catch { return undefined }
}
function end(pid) {
  send(pid, ward.signal || 'SIGQUIT')
  for (let round = 0; alive(pid) && round < 500; round += 1) wait(20)
  send(pid, 'SIGKILL')
  send(-pid, 'SIGKILL') // the rest of its process group: initdb runs helpers of its own
  for (let round = 0; alive(pid) && round < 100; round += 1) wait(20)
}
function clear() {
  const pids = new Set([ward.pid, ward.dataDir && lockedBy(ward.dataDir)])
  for (const pid of pids) if (pid) end(pid)
  for (const directory of ward.remove) {
    try { fs.rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }) } catch {}
  }
}
process.stdin.setEncoding('utf8')
process.stdin.on('data', (text) => {
  const lines = (rest + text).split('\\n')
  rest = lines.pop()
  for (const line of lines) ward = JSON.parse(line)
})
process.stdin.on('error', () => {})
process.stdin.on('close', clear)
for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => {})
`

/** Starts a watchdog. It does not keep this process alive. */
export function startWatchdog(): Watchdog {
  const child = spawn(process.execPath, ['-e', program], {
    cwd: '/',
    // A session of its own: Ctrl-C in the terminal must not reach it before it has done its work.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    windowsHide: true,
    env: { ...process.env, NODE_OPTIONS: '', NODE_CHANNEL_FD: undefined },
  })
  const { stdin } = child
  const state = { released: false }
  stdin.on('error', () => undefined) // the watchdog is gone; the next guard() would say nothing new
  child.unref()
  if ('unref' in stdin && typeof stdin.unref === 'function') stdin.unref()
  return {
    pid: child.pid ?? 0,
    guard: (ward) => {
      if (!state.released) stdin.write(`${JSON.stringify(ward)}\n`)
    },
    release: async () => {
      if (state.released) return
      state.released = true
      stdin.end(`${JSON.stringify({ remove: [] } satisfies Ward)}\n`)
      await exited(child)
    },
  }
}

async function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.ref()
  await once(child, 'exit')
}
