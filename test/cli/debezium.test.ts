import { expect, test } from 'vitest'
import { runCli } from './support.ts'

interface Printed {
  readonly name: string
  readonly config: Readonly<Record<string, string>>
}

const run = (...args: readonly string[]): ReturnType<typeof runCli> => runCli(['debezium', 'config', ...args])

async function printed(...args: readonly string[]): Promise<Printed> {
  const { stdout, stderr, code } = await run(...args)
  expect({ code, stderr }).toMatchObject({ code: 0 })
  return JSON.parse(stdout) as Printed
}

const POSTGRES = 'postgres://ivm:s3cret%21@db.example:6000/ivmlite'

test('prints the connector for the schema and the database of the address, and connects to nothing', async () => {
  const { name, config } = await printed('--database', POSTGRES, '--schema', 'my.box', '--name', 'IVM-outbox')
  expect(name).toBe('IVM-outbox')
  expect(config).toMatchObject({
    'connector.class': 'io.debezium.connector.postgresql.PostgresConnector',
    'database.hostname': 'db.example',
    'database.port': '6000',
    'database.user': 'ivm',
    'database.dbname': 'ivmlite',
    'plugin.name': 'pgoutput',
    'table.include.list': 'my\\.box.outbox_event',
    'slot.name': 'ivm_outbox',
    'publication.name': 'ivm_outbox',
    'transforms.outbox.route.topic.replacement': 'outbox.event.${routedByValue}',
  })
})

test('never prints the password of the address unless it is asked to', async () => {
  const hidden = await run('--database', POSTGRES)
  expect(hidden.stdout + hidden.stderr).not.toMatch(/s3cret/)
  expect(JSON.parse(hidden.stdout).config['database.password']).toBe('${env:COMMITPOST_DATABASE_PASSWORD}')
  expect(hidden.stderr).toContain('${env:COMMITPOST_DATABASE_PASSWORD}')
  const reference = '${file:/run/secrets/db:password}'
  const fromFile = await printed('--database', POSTGRES, '--password-from', reference)
  expect(fromFile.config['database.password']).toBe(reference)
  const shown = await printed('--database', POSTGRES, '--show-password')
  expect(shown.config['database.password']).toBe('s3cret!')
})

test('the host as Kafka Connect sees it, the topics, the key, the payload, the publication and the start can be chosen', async () => {
  const { config } = await printed(
    '--database',
    POSTGRES,
    '--host',
    'postgres',
    '--port',
    '5432',
    '--topic-prefix',
    'ivm.events',
    '--payload',
    'expanded',
    '--publication',
    'disabled',
    '--existing',
    '--key',
    'ordering-key',
  )
  expect(config).toMatchObject({
    'database.hostname': 'postgres',
    'database.port': '5432',
    'transforms.outbox.route.topic.replacement': 'ivm.events.${routedByValue}',
    'transforms.outbox.table.expand.json.payload': 'true',
    'value.converter': 'org.apache.kafka.connect.json.JsonConverter',
    'publication.autocreate.mode': 'disabled',
    'snapshot.mode': 'initial',
    'transforms.outbox.table.field.event.key': 'ordering_key',
    'transforms.outbox.table.fields.additional.placement': expect.stringContaining(
      'aggregate_id:header:aggregateId',
    ),
  })
})

test.each([
  ['mysql', 'io.debezium.connector.mysql.MySqlConnector'],
  ['mariadb', 'io.debezium.connector.mariadb.MariaDbConnector'],
])('an address that begins with %s:// gets that connector', async (scheme, connectorClass) => {
  const { config } = await printed(
    '--database',
    `${scheme}://app@db/shop`,
    '--bootstrap',
    'kafka:29092',
    '--server-id',
    '77',
  )
  expect(config).toMatchObject({
    'connector.class': connectorClass,
    'database.port': '3306',
    'database.include.list': 'shop',
    'table.include.list': 'shop.outbox_event',
    'database.server.id': '77',
    'schema.history.internal.kafka.bootstrap.servers': 'kafka:29092',
    'transforms.outbox.table.field.event.key': 'aggregate_id',
  })
  expect(config['transforms.outbox.table.fields.additional.placement']).not.toContain('aggregate_id')
  expect(Object.keys(config).filter((name) => /slot|publication|plugin\.name/.test(name))).toEqual([])
})

test.each([
  [['--database', 'postgres://db/shop'], 'with all of these parts'],
  [['--database', 'oracle://app@db/shop'], 'postgres://user@host:port/name or'],
  [['--database', 'postgres://a%ZZ@db/shop'], 'with all of these parts'],
  [['--database', POSTGRES, '--name', 'a b'], '--name must be letters, digits, ".", "_" and "-", at most 63'],
  [['--database', POSTGRES, '--topic-prefix', '주문'], '--topic-prefix must be letters'],
  [['--database', POSTGRES, '--key', 'event-id'], '--key must be aggregate-id'],
  [['--database', POSTGRES, '--payload', 'avro'], '--payload must be json'],
  [[], 'No database is named'],
])('refuses %j', async (args, said) => {
  const { code, stdout, stderr } = await run(...args)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(said)
})

test('speaks Korean', async () => {
  const { stderr } = await run('--database', 'postgres://db/shop', '--lang', 'ko')
  expect(stderr).toContain('모든 부분을 적어야 합니다')
})
