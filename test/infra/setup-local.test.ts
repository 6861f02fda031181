import { spawn } from 'node:child_process'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { RunningCli } from '../cli/support.ts'
import { kafkaAvailable } from '../support/kafka/jars.ts'
import { infraFile } from '../support/kafka/repository.ts'
import { bePatient } from '../support/patience.ts'
import { postgresAvailable } from '../support/servers.ts'

bePatient()
/** Three servers one after the other, on a machine that does much else. */
const START_MS = 300_000

describe.skipIf(!kafkaAvailable() || !postgresAvailable())('infra/setup-local.sh without docker', () => {
  test(
    'I7 I8 one command starts everything, and an event that is inserted is seen in its topic',
    async () => {
      const script = spawn(infraFile('setup-local.sh'), ['--without-docker'], {
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true, // a process group, as a terminal has one
      })
      const running = new RunningCli(script)
      const interrupt = (): boolean => process.kill(-(script.pid ?? 0), 'SIGINT')
      try {
        const psql = await running.line('PostgreSQL ')
        const status = await running.line('connector status')
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
    },
    START_MS,
  )
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
