import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { access, chmod, cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { locatePackage, platformPackage } from '../../src/testing/postgres/binaries.ts'
import { markOwners, sweepWorkspaces } from '../../src/testing/postgres/workspace.ts'
import {
  compiledDirectory,
  eventually,
  firstLine,
  isRunning,
  killProgram,
  type Program,
  startProgram,
} from '../support/program.ts'

interface Started {
  readonly pid: number
  readonly dataDir: string
  readonly url: string
}

/** The temporary directory of the programs under test, so that all they leave behind can be seen. */
let temporary: string
const programs: Program[] = []

function startServerProgram(options: object = {}, then: 'stay' | 'leave' = 'stay'): Program {
  const program = startProgram('start-postgres', [JSON.stringify(options), then], {
    cwd: '/',
    env: { ...process.env, TMPDIR: temporary },
  })
  programs.push(program)
  return program
}

beforeEach(async () => {
  temporary = await mkdtemp(join(tmpdir(), 'launcher-crash-'))
  await chmod(temporary, 0o755)
})

afterEach(async () => {
  await Promise.all(programs.splice(0).map(killProgram))
  await rm(temporary, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})

async function nothingLeft(): Promise<boolean> {
  return (await readdir(temporary)).length === 0
}

describe('when the process that started a server dies', () => {
  test('by SIGKILL, the server and its directory go too', async () => {
    const program = startServerProgram()
    const server = await firstLine<Started>(program)
    expect(isRunning(server.pid)).toBe(true)

    await killProgram(program)

    await eventually('the server ends', () => !isRunning(server.pid))
    await eventually('the directory goes', nothingLeft)
  })

  test('by SIGKILL with a client in the middle of a statement, the server still goes', async () => {
    const program = startServerProgram()
    const server = await firstLine<Started>(program)
    const client = new pg.Client({ connectionString: server.url })
    client.on('error', () => undefined)
    await client.connect()
    const statement = client.query('select pg_sleep(600)').catch((error: unknown) => error)

    await killProgram(program)

    await eventually('the server ends', () => !isRunning(server.pid))
    expect(await statement).toBeInstanceOf(Error)
    await eventually('the directory goes', nothingLeft)
  })

  test.each([0, 100, 200, 350, 500, 700, 900])(
    'by SIGKILL %i ms after its start, nothing is left',
    async (delayMs) => {
      const program = startServerProgram({ dataDir: join(temporary, 'kept', 'data') })
      await eventually('the program begins', async () => !(await nothingLeft()))
      await sleep(delayMs)

      await killProgram(program)

      const kept = join(temporary, 'kept')
      await eventually('all that is not to be kept goes', async () => {
        const names = [...(await readdir(temporary)), ...(await readdir(kept).catch(() => []))]
        return names.every((name) => name === 'kept' || name === 'data')
      })
      const lock = join(kept, 'data', 'postmaster.pid')
      await eventually('no server holds the kept directory', () => !existsSync(lock))
    },
  )

  test('by leaving without a stop, it is not held up and leaves nothing', async () => {
    const program = startServerProgram({}, 'leave')
    const exit = once(program, 'exit')
    const server = await firstLine<Started>(program)
    expect(await exit).toEqual([0, null])
    await eventually('the server ends', () => !isRunning(server.pid))
    await eventually('the directory goes', nothingLeft)
  })

  test('by SIGKILL, data that is to be kept stays and starts again', async () => {
    const dataDir = join(temporary, 'kept')
    const program = startServerProgram({ dataDir })
    const first = await firstLine<Started>(program)
    await killProgram(program)
    await eventually('the server ends', () => !isRunning(first.pid))
    await eventually('the rest goes', async () => (await readdir(temporary)).join() === 'kept')

    const second = await firstLine<Started>(startServerProgram({ dataDir }))
    expect(second.dataDir).toBe(dataDir)
  })
})

describe('what was left behind by a crash of the whole machine', () => {
  test('is removed by the next start, but nothing of a process that lives', async () => {
    const before = process.env['TMPDIR']
    process.env['TMPDIR'] = temporary
    try {
      const make = async (name: string, pids: readonly number[]): Promise<void> => {
        await mkdir(join(temporary, `commitpost-postgres-${name}`, 'data'), { recursive: true })
        await markOwners(join(temporary, `commitpost-postgres-${name}`), pids)
      }
      const gone = startServerProgram()
      await killProgram(gone)
      await make('dead', [gone.pid ?? 0])
      await make('alive', [gone.pid ?? 0, process.pid])
      await mkdir(join(temporary, 'commitpost-postgres-unmarked'))
      await writeFile(join(temporary, 'else'), '')

      await sweepWorkspaces()

      const left = await readdir(temporary)
      expect(left).toEqual(expect.arrayContaining(['commitpost-postgres-alive', 'else']))
      expect(left).not.toContain('commitpost-postgres-dead')
    } finally {
      if (before === undefined) delete process.env['TMPDIR']
      else process.env['TMPDIR'] = before
    }
  })
})

const nobody = 65534
const canBeNobody = process.getuid?.() === 0

test.runIf(canBeNobody)(
  'an ordinary user runs the server, from a directory without install scripts',
  async () => {
    // A copy, because a checkout in root's home cannot be entered by another user.
    const project = join(temporary, 'project')
    await cp(join(compiledDirectory, 'src'), join(project, 'src'), { recursive: true })
    await cp(join(compiledDirectory, 'test', 'programs'), join(project, 'test', 'programs'), {
      recursive: true,
    })
    await cp(locatePackage(), join(project, 'node_modules', platformPackage()), { recursive: true })
    await writeFile(join(project, 'package.json'), '{ "type": "module" }')
    const home = join(temporary, 'home')
    await mkdir(home)
    await chmod(home, 0o777)
    await access(process.execPath)

    const program = startProgram('start-postgres', [], {
      cwd: '/',
      uid: nobody,
      gid: nobody,
      env: { TMPDIR: home },
      directory: project,
    })
    programs.push(program)
    const server = await firstLine<Started>(program)
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    expect((await client.query('select 1 as n')).rows).toEqual([{ n: 1 }])
    await client.end()
    expect(dirname(dirname(server.dataDir))).toBe(home)

    await killProgram(program)
    await eventually('the server ends', () => !isRunning(server.pid))
    await eventually('the directory goes', async () => (await readdir(home)).length === 0)
  },
)
