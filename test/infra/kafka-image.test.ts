import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { findProgram } from '../support/find-program.ts'
import { ensureJars, kafkaAvailable } from '../support/kafka/jars.ts'
import { infraFile } from '../support/kafka/repository.ts'
import { bePatient } from '../support/patience.ts'

bePatient()

const execute = promisify(execFile)

interface Compose {
  readonly services: { readonly kafka: { readonly environment: Readonly<Record<string, string>> } }
}

/** What the container of compose.yaml finds in its environment. */
async function environment(): Promise<Readonly<Record<string, string>>> {
  const file = await readFile(infraFile('kafka.env'), 'utf8')
  const lines = file.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const shared = Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2)))
  const { services } = parse(await readFile(infraFile('compose.yaml'), 'utf8')) as Compose
  return { ...shared, ...services.kafka.environment }
}

describe.skipIf(!kafkaAvailable())('the image of Kafka', () => {
  test('I7 its own program takes the settings of compose.yaml and formats the storage with them', async () => {
    const { libs } = await ensureJars()
    const directory = await mkdtemp(join(tmpdir(), 'commitpost-image-test-'))
    try {
      const [defaults, mounted, final] = ['defaults', 'mounted', 'final'].map((name) => join(directory, name))
      for (const path of [defaults, mounted, final]) await mkdir(path ?? '')
      const program = ['-cp', join(libs, '*'), 'kafka.docker.KafkaDockerWrapper', 'setup']
      const { stdout } = await execute(
        findProgram('java') ?? 'java',
        [...program, '-D', defaults ?? '', '-M', mounted ?? '', '-F', final ?? ''],
        {
          env: {
            ...process.env,
            ...(await environment()),
            CLUSTER_ID: '5L6g3nShT-eMCtK--X86sw', // as the image has it
            KAFKA_LOG_DIRS: join(directory, 'data'),
          },
          maxBuffer: 16 * 1024 * 1024,
        },
      )
      expect(stdout).toContain('Formatting metadata directory')
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })
})
