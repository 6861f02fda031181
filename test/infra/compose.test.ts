import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { serverSettings } from '../../src/testing/embedded-options.ts'
import { findProgram } from '../support/find-program.ts'
import { PORTS, readAccount } from '../support/infra/places.ts'
import { infraFile } from '../support/kafka/repository.ts'
import { sharedSettings } from '../support/kafka/settings.ts'
import { available } from '../support/servers.ts'

const duration = z.string().regex(/^\d+(ms|s|m|h)$/)
const portSchema = z.string().regex(/^127\.0\.0\.1:\d{1,5}:\d{1,5}$/)

/**
 * As much of the compose specification as the file has a use for, and nothing else: a name that is misspelt, or a value of
 * another kind, is found where there is no docker to ask as well.
 */
const serviceSchema = z.strictObject({
  image: z.string().regex(/^[a-z0-9./-]+:[A-Za-z0-9._-]+$/),
  command: z.array(z.string()).optional(),
  env_file: z.string().optional(),
  environment: z.record(z.string().regex(/^[A-Z0-9_]+$/), z.string()).optional(),
  ports: z.array(portSchema).optional(),
  volumes: z.array(z.string().regex(/^\.{1,2}\/[^:]+:\/[^:]+:ro$/)).optional(),
  extra_hosts: z.array(z.string().regex(/^[^:]+:[^:]+$/)).optional(),
  depends_on: z
    .union([
      z.array(z.string()),
      z.record(z.string(), z.strictObject({ condition: z.literal('service_healthy') })),
    ])
    .optional(),
  healthcheck: z
    .strictObject({
      test: z.tuple([z.enum(['CMD', 'CMD-SHELL']), z.string()]).rest(z.string()),
      interval: duration,
      timeout: duration,
      retries: z.int().positive(),
    })
    .optional(),
})
const fileSchema = z.strictObject({
  services: z.record(z.string().regex(/^[a-zA-Z0-9._-]+$/), serviceSchema),
})
type Service = z.infer<typeof serviceSchema>

const compose = infraFile('compose.yaml')
const content: unknown = parse(readFileSync(compose, 'utf8'))
const { services } = content as z.infer<typeof fileSchema>
const service = (name: string): Service => services[name] ?? { image: '' }
const pom = readFileSync(infraFile('pom.xml'), 'utf8')
const execute = promisify(execFile)

/** The plugin of docker, or the program of its own that came before it and that Debian has. */
async function findCompose(): Promise<readonly [string, ...string[]] | null> {
  const program = findProgram('docker-compose')
  if (program !== null) return [program]
  const docker = findProgram('docker')
  if (docker === null) return null
  return await execute(docker, ['compose', 'version']).then(
    () => [docker, 'compose'] as const,
    () => null,
  )
}

const composeCommand = await findCompose()

describe('infra/compose.yaml', () => {
  test.skipIf(!available('docker compose, or docker-compose', composeCommand !== null))(
    'I7 is valid to docker compose',
    async () => {
      const [program, ...words] = composeCommand ?? ['docker']
      await execute(program, [...words, '--file', compose, 'config', '--quiet'])
    },
  )

  test('I7 has nothing but what the compose specification knows, each of its kind', () => {
    expect(fileSchema.safeParse(content).error?.issues ?? []).toEqual([])
    const waited = Object.values(services).flatMap(({ depends_on = {} }) =>
      Array.isArray(depends_on) ? [] : Object.keys(depends_on),
    )
    expect(waited.filter((name) => service(name).healthcheck === undefined)).toEqual([])
  })

  test('I7 I8 has every server of the stack on the port that is promised', () => {
    const published = Object.entries(services).map(([name, { ports = [] }]) => [
      name,
      ports.map((port) => port.split(':')[1]).join(),
    ])
    expect(PORTS).toEqual({ postgres: 5432, kafka: 9092, connect: 8083 })
    expect(Object.fromEntries(published)).toEqual({
      postgres: String(PORTS.postgres),
      kafka: String(PORTS.kafka),
      connect: String(PORTS.connect),
      'kafka-ui': '8080',
      prometheus: '9090',
      grafana: '3000',
    })
  })

  test('depends on services that are there, and reads and mounts files that are there', () => {
    const missing = Object.values(services).flatMap(({ depends_on = [], env_file, volumes = [] }) => {
      const files = [...volumes.map((volume) => volume.split(':')[0] ?? ''), ...(env_file ? [env_file] : [])]
      const needed = Array.isArray(depends_on) ? depends_on : Object.keys(depends_on)
      return [
        ...needed.filter((name: string) => !(name in services)),
        ...files.filter((file) => !existsSync(join(dirname(compose), file))),
      ]
    })
    expect(missing).toEqual([])
  })

  test('runs the versions of Kafka and Debezium that the tests run', () => {
    const version = (name: string): string => new RegExp(`<${name}.version>(.*?)</`).exec(pom)?.[1] ?? ''
    expect(service('kafka').image).toBe(`apache/kafka:${version('kafka')}`)
    expect(service('connect').image).toBe(`quay.io/debezium/connect:${version('debezium')}`)
  })

  test('I7 runs with the settings that the tests run with, and changes none of them', async () => {
    const { wal_level } = serverSettings({})
    expect(wal_level).toBe('logical')
    expect(service('postgres').command).toEqual(['postgres', '-c', `wal_level=${wal_level}`])
    for (const [name, prefix] of [
      ['postgres', 'POSTGRES_'],
      ['kafka', 'KAFKA_'],
      ['connect', 'CONNECT_'],
    ] as const) {
      const { env_file = '', environment = {} } = service(name)
      expect(env_file).toBe(`${name}.env`)
      const shared = Object.keys(await sharedSettings(env_file, prefix))
      const own = Object.keys(environment).map((setting) =>
        setting.replace(prefix, '').toLowerCase().replaceAll('_', '.'),
      )
      expect(shared.length).toBeGreaterThan(2)
      expect(own.filter((setting) => shared.includes(setting))).toEqual([])
    }
  })

  test('I8 the database is ivmlite, its user ivm, and Connect knows the password', async () => {
    const account = await readAccount()
    expect(account).toEqual({ user: 'ivm', password: 'ivm', database: 'ivmlite' })
    expect(service('connect').environment?.['COMMITPOST_DATABASE_PASSWORD']).toBe(account.password)
  })

  test('Prometheus and Grafana get our rules and our dashboard', () => {
    expect(service('prometheus').volumes).toContain(
      '../ops/prometheus/rules.yaml:/etc/prometheus/rules.yaml:ro',
    )
    const [, dashboards = ''] =
      /^\.\.\/ops\/grafana:([^:]+)/.exec(service('grafana').volumes?.at(-1) ?? '') ?? []
    const provider = parse(readFileSync(infraFile('grafana-dashboards.yaml'), 'utf8'))
    expect(provider.providers[0].options.path).toBe(dashboards)
    const prometheus = parse(readFileSync(infraFile('prometheus.yaml'), 'utf8'))
    expect(prometheus.rule_files).toEqual(['/etc/prometheus/rules.yaml'])
  })
})
