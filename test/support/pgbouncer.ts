import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serverAccount } from '../../src/testing/postgres/account.ts'
import { freePort } from '../../src/testing/postgres/server.ts'
import { findProgram } from './find-program.ts'
import { comes } from './patience.ts'

/** A pgbouncer in transaction mode before a server. */
export interface Pgbouncer extends AsyncDisposable {
  /** The server's database `postgres`, through the pooler. */
  readonly url: string
  /** How many connections it opens to the server at most. */
  readonly poolSize: number
  stop(): Promise<void>
}

/** The pgbouncer of this machine, or null if there is none. */
export function findPgbouncer(): string | null {
  return findProgram('pgbouncer')
}

/** Starts it on a free port, with a directory and an account of its own. It ends with this process, however it dies. */
export async function startPgbouncer(databaseUrl: string, poolSize = 6): Promise<Pgbouncer> {
  const directory = await mkdtemp(join(tmpdir(), 'commitpost-pgbouncer-'))
  await chmod(directory, 0o755) // for the account it runs as
  const port = await freePort()
  const settings = join(directory, 'pgbouncer.ini')
  await writeFile(settings, settingsText(databaseUrl, port, poolSize))
  const child = spawnTied(findPgbouncer() ?? 'pgbouncer', settings, join(directory, 'log'))
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      const exit = once(child, 'exit')
      child.stdin?.end()
      await exit
    }
    await rm(directory, { recursive: true, force: true })
  }
  try {
    await comes('pgbouncer takes connections', () => takesConnections(port))
  } catch (error) {
    const log = await readFile(join(directory, 'log'), 'utf8').catch(() => '')
    await stop()
    throw new Error(`pgbouncer did not start:\n${log}`, { cause: error })
  }
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    poolSize,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

function settingsText(databaseUrl: string, port: number, poolSize: number): string {
  const server = new URL(databaseUrl)
  return `[databases]
postgres = host=${server.hostname} port=${server.port} dbname=postgres user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 500
server_idle_timeout = 0
`
}

/** A shell waits for the end of its input, which comes with the end of this process, and ends the pooler then. */
function spawnTied(pgbouncer: string, settings: string, logFile: string): ChildProcess {
  const script = '"$1" "$2" & read -r _; kill $!; wait'
  const log = openSync(logFile, 'a')
  try {
    return spawn('sh', ['-c', script, 'sh', pgbouncer, settings], {
      ...serverAccount(), // it refuses to run as root
      cwd: '/',
      stdio: ['pipe', log, log],
    })
  } finally {
    closeSync(log)
  }
}

function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
