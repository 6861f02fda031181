import { spawn, spawnSync } from 'node:child_process'
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { isFree } from '../../src/testing/postgres/server.ts'
import { RunningCli } from '../cli/support.ts'
import { whereToLook } from '../support/infra/where-to-look.ts'
import { kafkaAvailable } from '../support/kafka/jars.ts'
import { infraFile } from '../support/kafka/repository.ts'
import { bePatient, comes } from '../support/patience.ts'
import { compiledDirectory } from '../support/program.ts'
import { postgresAvailable } from '../support/servers.ts'

bePatient()

describe.skipIf(!kafkaAvailable() || !postgresAvailable())('infra/setup-local.sh without docker', () => {
  test('I7 I8 one command starts everything, and an event that is inserted is seen in its topic', async () => {
    const script = spawn(infraFile('setup-local.sh'), ['--without-docker'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // a process group, as a terminal has one
    })
    const running = new RunningCli(script)
    const interrupt = (): boolean => process.kill(-(script.pid ?? 0), 'SIGINT')
    const ports: number[] = []
    try {
      const psql = await running.line('PostgreSQL ')
      const status = await running.line('connector status')
      const printed = [psql, await running.line('Kafka  '), status]
      ports.push(...printed.map((line) => Number(/127\.0\.0\.1:(\d+)/.exec(line)?.[1])))
      const url = /postgres:\S+/.exec(psql)?.[0] ?? ''
      expect(url).toMatch(/^postgres:\/\/ivm:ivm@127\.0\.0\.1:\d+\/ivmlite$/)
      const said = await fetch(/http:\S+/.exec(status)?.[0] ?? '')
      expect(await said.json()).toMatchObject({
        name: 'ivm-outbox-connector',
        connector: { state: 'RUNNING' },
        tasks: [{ state: 'RUNNING' }],
      })
      // Debezium got in with the password that Kafka Connect knows, and without it nobody does.
      await expect(execute(url.replace('ivm:ivm@', 'ivm:wrong@'), 'select 1')).rejects.toThrow(/password/)
      const statement = /-c "(.*)"/.exec(await running.line('an event'))?.[1] ?? ''
      await execute(url, statement)
      const record = await running.line('ivm.events.raw_data  ')
      expect(record).toBe('ivm.events.raw_data  tenant-1:product-123  RawDataIngested  {"version": 1}')
    } finally {
      interrupt()
    }
    expect((await running.ended).code).toBe(0)
    expect(await Promise.all(ports.map(isFree))).toEqual([true, true, true])
  })

  test('I7 Ctrl-C while the servers start ends them at once, and nothing is left behind', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'commitpost-interrupt-test-'))
    await chmod(directory, 0o755) // for the account that the database runs as
    const program = join(compiledDirectory, 'test', 'programs', 'infra.js')
    const env = { ...process.env, TMPDIR: directory }
    const running = new RunningCli(
      spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'pipe'], env }),
    )
    try {
      await comes('the first is being started', async () => (await readdir(directory)).length > 0)
      running.signal('SIGINT')
      const { code, stdout } = await running.ended
      expect(code).toBe(130)
      expect(stdout).toMatch(/^Starting .*\nStopping \.\.\.\n$/)
      await comes('their directories are gone', async () => (await readdir(directory)).length === 0)
    } finally {
      running.signal('SIGKILL')
      await rm(directory, { recursive: true, force: true })
    }
  })
})

/** Runs the script where `docker` and `node` only write down what they were asked; `answer` is what docker does with it. */
async function runWith(
  answer: string,
): Promise<{ readonly status: number | null; readonly output: string; readonly calls: readonly string[] }> {
  const directory = await mkdtemp(join(tmpdir(), 'commitpost-setup-test-'))
  const calls = join(directory, 'calls')
  try {
    for (const [name, body] of [
      ['docker', answer],
      ['node', ''],
    ] as const) {
      await writeFile(join(directory, name), `#!/bin/sh\necho "${name} $*" >>"${calls}"\n${body}\n`)
      await chmod(join(directory, name), 0o755)
    }
    const env = { ...process.env, PATH: `${directory}:/usr/bin:/bin` }
    const { status, stdout } = spawnSync(infraFile('setup-local.sh'), [], { env, encoding: 'utf8' })
    return { status, output: stdout, calls: (await readFile(calls, 'utf8')).trim().split('\n') }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

describe.skipIf(process.platform === 'win32')('infra/setup-local.sh', () => {
  test('I7 I8 with an engine it starts the containers, waits until they are healthy, and registers the connector', async () => {
    expect(await runWith('exit 0')).toMatchObject({
      status: 0,
      calls: [
        'docker info',
        'docker compose version',
        'docker compose --project-name commitpost --file infra/compose.yaml up --detach --wait',
        'node scripts/run.mjs infra register',
      ],
    })
  })

  test.each([
    ['no engine answers', 'exit 1', ['docker info']],
    [
      'docker has no compose',
      'case "$1" in compose) exit 1 ;; esac',
      ['docker info', 'docker compose version'],
    ],
  ])('I7 where %s it starts the same without, and says so', async (_, answer, asked) => {
    const { status, output, calls } = await runWith(answer)
    expect({ status, calls }).toEqual({ status: 0, calls: [...asked, 'node scripts/run.mjs infra'] })
    expect(output).toContain('starting the same without it')
  })

  test('I7 containers that do not become healthy are an error, and nothing is registered', async () => {
    const { status, calls } = await runWith('case "$*" in *up*) exit 3 ;; esac')
    expect({ status, last: calls.at(-1) }).toEqual({
      status: 3,
      last: 'docker compose --project-name commitpost --file infra/compose.yaml up --detach --wait',
    })
  })

  test('I8 tells where to look: Kafka UI, psql, the status of the connector', () => {
    const places = {
      databaseUrl: 'postgres://ivm:ivm@127.0.0.1:5432/ivmlite',
      bootstrap: '127.0.0.1:9092',
      connectUrl: 'http://127.0.0.1:8083',
    }
    const said = whereToLook(places, { docker: true })
    for (const line of [
      'psql postgres://ivm:ivm@127.0.0.1:5432/ivmlite',
      'curl http://127.0.0.1:8083/connectors/ivm-outbox-connector/status',
      'http://127.0.0.1:8080',
      'http://127.0.0.1:3000/d/commitpost-outbox',
    ]) {
      expect(said).toContain(line)
    }
  })
})

async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  try {
    await client.connect()
    await client.query(statement)
  } finally {
    await client.end()
  }
}
