import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { chmod, chown, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { serverAccount } from '../../src/testing/postgres/account.ts'
import { end, freePort, hasExited } from '../../src/testing/postgres/server.ts'
import { startWatchdog } from '../../src/testing/postgres/watchdog.ts'
import { findProgram } from './find-program.ts'
import { comes } from './patience.ts'
import { available } from './servers.ts'

const execute = promisify(execFile)

/** A running MariaDB whose log can be read. It ends with this process, however that dies. */
export interface MariaDb extends AsyncDisposable {
  /** On 127.0.0.1. */
  readonly port: number
  /** Runs statements one after the other in one session, as root, and hands over what they printed. */
  sql(statements: string): Promise<string>
}

/** Whether a suite can start a MariaDB of its own. */
export function mariadbAvailable(): boolean {
  const programs = ['mariadbd', 'mariadb', 'mariadb-install-db']
  return available("MariaDB (Debian's package mariadb-server)", programs.every(isInstalled))
}

const isInstalled = (name: string): boolean => findProgram(name) !== null

/** Starts it on a free port in a directory of its own, with nothing of the machine's configuration. */
export async function startMariadb(): Promise<MariaDb> {
  const directory = await mkdtemp(join(tmpdir(), 'commitpost-mariadb-'))
  const watchdog = startWatchdog()
  watchdog.guard({ remove: [directory] })
  const socket = join(directory, 'socket')
  const sql = (statements: string): Promise<string> => runStatements(socket, statements)
  let server: ChildProcess | undefined
  const stop = async (): Promise<void> => {
    if (server !== undefined) await end(server, 'SIGTERM')
    await watchdog.release()
    await rm(directory, { recursive: true, force: true })
  }
  try {
    await install(directory)
    const port = await freePort()
    const child = spawnServer(directory, socket, port)
    server = child
    watchdog.guard({ pid: child.pid, signal: 'SIGKILL', remove: [directory] })
    await comes('MariaDB answers', async () => {
      if (child.pid === undefined || hasExited(child)) throw new Error('MariaDB ended while it was starting')
      return await sql('select 1').then(
        () => true,
        () => false,
      )
    })
    return { port, sql, [Symbol.asyncDispose]: stop }
  } catch (error) {
    const log = await readFile(join(directory, 'log'), 'utf8').catch(() => '')
    await stop()
    throw new Error(`MariaDB did not start:\n${log.split('\n').slice(-25).join('\n')}`, { cause: error })
  }
}

async function install(directory: string): Promise<void> {
  const account = serverAccount() // it does not run as root unless it is told to
  if (account !== undefined) await chown(directory, account.uid, account.gid)
  await chmod(directory, 0o755)
  const data = `--datadir=${join(directory, 'data')}`
  const flags = ['--no-defaults', data, '--auth-root-authentication-method=normal', '--skip-test-db']
  await execute(findProgram('mariadb-install-db') ?? '', flags, { ...account, cwd: directory })
}

function spawnServer(directory: string, socket: string, port: number): ChildProcess {
  const flags = [
    '--no-defaults',
    `--datadir=${join(directory, 'data')}`,
    `--socket=${socket}`,
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    '--skip-name-resolve',
    // Not that of whoever reads: a time that is told in the wrong one is seen.
    '--default-time-zone=+09:00',
    '--innodb-buffer-pool-size=32M',
    // What a reader of the log needs.
    '--server-id=1',
    '--log-bin=log-bin',
    '--binlog-format=ROW',
  ]
  const log = openSync(join(directory, 'log'), 'a') // not a pipe: a dead parent must not break the server
  try {
    const child = spawn(findProgram('mariadbd') ?? 'mariadbd', flags, {
      ...serverAccount(),
      cwd: directory,
      // A session of its own: Ctrl-C in the terminal must not stop the server before its clients.
      detached: true,
      stdio: ['ignore', log, log],
    })
    child.on('error', () => undefined) // seen as a process without a pid
    child.unref()
    return child
  } finally {
    closeSync(log)
  }
}

async function runStatements(socket: string, statements: string): Promise<string> {
  const flags = ['--no-defaults', `--socket=${socket}`, '--user=root', '--batch', '--skip-column-names']
  const { stdout } = await execute(findProgram('mariadb') ?? 'mariadb', [...flags, '--execute', statements])
  return stdout.trim()
}
