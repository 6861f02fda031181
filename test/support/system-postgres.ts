import { execFile } from 'node:child_process'
import { accessSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { serverAccount } from '../../src/testing/postgres/account.ts'
import { end, freePort, startServer } from '../../src/testing/postgres/server.ts'
import { PATIENCE_MS } from './patience-ms.ts'

/** A server of this machine's own package, with data of its own. */
export interface SystemPostgres extends AsyncDisposable {
  readonly url: string
}

/** Where Debian puts a version. */
function directoryOf(version: number): string {
  return `/usr/lib/postgresql/${version}/bin`
}

export function isSystemPostgresThere(version: number): boolean {
  try {
    accessSync(join(directoryOf(version), 'postgres'))
    return true
  } catch {
    return false
  }
}

export async function startSystemPostgres(
  version: number,
  settings: Readonly<Record<string, string>>,
): Promise<SystemPostgres> {
  const directory = await mkdtemp(join(tmpdir(), `commitpost-pg${version}-`))
  const dataDir = join(directory, 'data')
  const account = serverAccount()
  await chmod(directory, 0o755)
  await mkdir(dataDir, { mode: 0o700 })
  if (account !== undefined) await chown(dataDir, account.uid, account.gid)
  const bin = directoryOf(version)
  const initialise = ['-D', dataDir, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync']
  await promisify(execFile)(join(bin, 'initdb'), initialise, { ...account, cwd: '/' })
  const port = await freePort()
  const server = await startServer({
    postgres: join(bin, 'postgres'),
    dataDir,
    port,
    settings: { wal_level: 'logical', fsync: 'off', ...settings },
    account,
    cwd: '/',
    logFile: join(directory, 'log'),
    timeoutMs: PATIENCE_MS,
    onSpawn: () => undefined,
  })
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    [Symbol.asyncDispose]: async () => {
      await end(server, 'SIGQUIT')
      await rm(directory, { recursive: true, force: true })
    },
  }
}
