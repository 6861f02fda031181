import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Account } from './account.ts'
import { EmbeddedPostgresError } from './error.ts'

/** How to start a server process. */
export interface ServerCommand {
  readonly postgres: string
  readonly dataDir: string
  readonly port: number
  readonly settings: Readonly<Record<string, string>>
  readonly account: Account
  readonly cwd: string
  readonly logFile: string
  readonly timeoutMs: number
  /** Called with the process id before the server is ready. */
  readonly onSpawn: (pid: number | undefined) => void
}

const pollMs = 15

/** Starts the server and waits until it takes connections. Passing obstacles are waited out, up to the time limit. */
export async function startServer(command: ServerCommand): Promise<ChildProcess> {
  const deadline = performance.now() + command.timeoutMs
  for (;;) {
    const logStart = await logSize(command.logFile)
    const child = spawnServer(command)
    command.onSpawn(child.pid)
    if (await becomesReady(child, command.dataDir, deadline)) return child
    await end(child)
    command.onSpawn(undefined)
    const log = (await readFile(command.logFile, 'utf8')).slice(logStart)
    if (!isPassing(log) || performance.now() >= deadline) throw startError(command, log)
    await sleep(100)
  }
}

/** Given once: whoever got one may not listen on it yet. */
const givenPorts = new Set<number>()

/** A port that nobody listens on, below the range that the system takes outgoing connections from. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = randomInt(20_000, 30_000)
    if (givenPorts.has(port) || !(await isFree(port))) continue
    givenPorts.add(port)
    return port
  }
  throw new EmbeddedPostgresError(
    'EMBEDDED_POSTGRES_START_FAILED',
    'Found no free port between 20000 and 30000.',
  )
}

/** Whether nobody listens on a port of this machine. */
export async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  const answer = new Promise<boolean>((resolve) => {
    probe.once('error', () => resolve(false))
    probe.once('listening', () => resolve(true))
  })
  probe.listen(port, '127.0.0.1')
  if (!(await answer)) return false
  probe.close()
  await once(probe, 'close')
  return true
}

function spawnServer(command: ServerCommand): ChildProcess {
  const settings = { ...command.settings, listen_addresses: '127.0.0.1', unix_socket_directories: '' }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  // A file, not a pipe: a busy parent must not block the server, nor a dead one break it.
  const log = openSync(command.logFile, 'a')
  try {
    const child = spawn(command.postgres, ['-D', command.dataDir, '-p', String(command.port), ...flags], {
      ...command.account,
      cwd: command.cwd,
      // A session of its own: Ctrl-C in the terminal must not stop the server before its clients.
      detached: true,
      stdio: ['ignore', log, log],
      windowsHide: true,
    })
    child.on('error', () => undefined) // seen as a process without pid, see becomesReady
    child.unref()
    return child
  } finally {
    closeSync(log)
  }
}

/** The last line of the lock file carries the server's state: the same sign that `pg_ctl start` waits for. */
async function becomesReady(child: ChildProcess, dataDir: string, deadline: number): Promise<boolean> {
  while (performance.now() < deadline) {
    if (child.pid === undefined || hasExited(child)) return false
    const lines = (await readFile(join(dataDir, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')
    if (lines[0] === String(child.pid) && lines[7]?.trim() === 'ready') return true
    await sleep(pollMs)
  }
  return false
}

/** Whether the process is known to have ended. */
export function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

/** Sends a signal and waits for the end of the process. */
export async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (child.pid === undefined || hasExited(child)) return
  child.ref()
  const exit = once(child, 'exit')
  child.kill(signal)
  await exit
}

/** After a crash the old shared memory lives on for a moment; a port may be taken for a moment. */
function isPassing(log: string): boolean {
  return /pre-existing shared memory block|could not create any TCP\/IP sockets/.test(log)
}

function startError(command: ServerCommand, log: string): EmbeddedPostgresError {
  const holder = /lock file "postmaster.pid" already exists[\s\S]*\(PID (\d+)\)/.exec(log)?.[1]
  if (holder !== undefined) {
    return new EmbeddedPostgresError(
      'EMBEDDED_POSTGRES_IN_USE',
      `Another server (process ${holder}) uses the data directory ${command.dataDir}. ` +
        'Stop it first, or choose another data directory.',
    )
  }
  const reason = log.trim().split('\n').slice(-10).join('\n') || `${command.postgres} could not be run`
  return new EmbeddedPostgresError('EMBEDDED_POSTGRES_START_FAILED', `PostgreSQL did not start:\n${reason}`)
}

async function logSize(file: string): Promise<number> {
  return await stat(file).then(
    ({ size }) => size,
    () => 0,
  )
}
