import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type KafkaServer, startKafka } from '../support/kafka/broker.ts'
import { type ConnectServer, startConnect } from '../support/kafka/connect.ts'
import { kafkaAvailable } from '../support/kafka/jars.ts'
import { type Records, readTopics } from '../support/kafka/records.ts'
import { type MariaDb, mariadbAvailable, startMariadb } from '../support/mariadb.ts'
import { bePatient, comes } from '../support/patience.ts'
import { arrived, CONNECTOR, printedConfig } from './debezium-system.ts'

bePatient()

const PASSWORD = 's3cret'
const page = readFileSync(new URL('../../docs/debezium.md', import.meta.url), 'utf8')

/** The statements that the page gives for MySQL and MariaDB, as they are, but for the password. */
function statementsOfThePage(): string {
  const section = page.slice(page.indexOf('### MySQL and MariaDB'))
  const blocks = [...section.matchAll(/```sql\n(.*?)```/gs)].map(([, block]) => block)
  return blocks.join('\n').replace("'…'", `'${PASSWORD}'`)
}

const available = [kafkaAvailable(), mariadbAvailable()].every(Boolean)

describe.skipIf(!available)('an outbox table of MariaDB through Debezium and Kafka', () => {
  let mariadb: MariaDb
  let kafka: KafkaServer
  let connect: ConnectServer
  let records: Records

  beforeAll(async () => {
    mariadb = await startMariadb()
    await mariadb.sql(`create database shop; use shop; ${statementsOfThePage()}`)
    kafka = await startKafka()
    const env = { COMMITPOST_DATABASE_PASSWORD: PASSWORD }
    connect = await startConnect({ bootstrap: kafka.bootstrap, connectors: 'mariadbPlugins', env })
    await register(CONNECTOR, ['--topic-prefix', 'ivm.events'])
    records = await readTopics(kafka.bootstrap, ['ivm.events.raw_data', 'ivm.events.slice'])
  })

  afterAll(async () => {
    await records?.[Symbol.asyncDispose]()
    await connect?.stop()
    await kafka?.stop()
    await mariadb?.[Symbol.asyncDispose]()
  })

  const printed = (name: string, options: readonly string[]): ReturnType<typeof printedConfig> => {
    const url = `mariadb://debezium@127.0.0.1:${mariadb.port}/shop`
    return printedConfig({ schema: 'commitpost', url }, name, ['--bootstrap', kafka.bootstrap, ...options])
  }

  /** Registers a connector and waits until one more reads the log: from here on, all that is committed is sent. */
  const register = async (name: string, options: readonly string[]): Promise<void> => {
    const readers = async (): Promise<number> =>
      Number(
        await mariadb.sql(
          "select count(*) from information_schema.processlist where command like 'Binlog Dump%'",
        ),
      )
    const before = await readers()
    await connect.register(name, await printed(name, options))
    await comes('the log is read', async () => (await readers()) > before)
  }

  /** What the table has of the event of an aggregate. */
  const written = async (aggregateId: string): Promise<{ eventId: string; occurredAt: Date }> => {
    const row = await mariadb.sql(
      `set time_zone = '+00:00';
       select event_id, date_format(occurred_at, '%Y-%m-%dT%T.%fZ') from shop.outbox_event
        where aggregate_id = '${aggregateId}'`,
    )
    const [eventId = '', occurredAt = ''] = row.split('\t')
    return { eventId, occurredAt: new Date(occurredAt) }
  }

  const insert = (type: string, aggregate: string, id: string, payload: string): string =>
    `insert into outbox_event (stream, event_type, aggregate_type, aggregate_id, payload)
     values ('ivm', '${type}', '${aggregate}', '${id}', '${payload}');`

  test('I4 the printed connector registers as it is and runs', async () => {
    expect(await connect.status(CONNECTOR)).toEqual({ connector: 'RUNNING', tasks: ['RUNNING'], trace: '' })
  })

  test('I4 the MariaDbConnector knows every setting that is printed for it, and finds nothing wrong', async () => {
    const config = await printed(CONNECTOR, [])
    const judged = await connect.validate('MariaDbConnector', config)
    expect(judged).toEqual({ unknown: [], problems: {} })
  })

  test('I4 an insert arrives: topic by aggregate type, key, headers, and the payload as the value', async () => {
    const payload = '{"none": null, "empty": [], "mixed": [1, 2.5, "x"], "한글": "값"}'
    await mariadb.sql(`use shop; ${insert('RawDataIngested', 'raw_data', 'tenant-1:product-123', payload)}`)
    const [record] = await arrived(records, 'tenant-1:product-123', 1)
    const { eventId, occurredAt } = await written('tenant-1:product-123')
    expect(record).toMatchObject({
      topic: 'ivm.events.raw_data',
      key: 'tenant-1:product-123',
      value: payload,
    })
    const { occurredAt: told = '', ...headers } = record?.headers ?? {}
    expect(headers).toEqual({
      id: eventId,
      eventId,
      eventType: 'RawDataIngested',
      schemaVersion: '1',
      stream: 'ivm',
      aggregateType: 'raw_data',
      headers: '{}',
    })
    expect(new Date(told)).toEqual(occurredAt)
  })

  test('I4 each aggregate type has its topic, and the order of an aggregate is kept', async () => {
    const versions = Array.from({ length: 500 }, (_, index) => index + 1)
    const inserts = versions.map((version) => insert('SliceCreated', 'slice', 'p:CORE', `{"v": ${version}}`))
    await mariadb.sql(`use shop; ${inserts.join('\n')}`)
    const seen = await arrived(records, 'p:CORE', versions.length)
    expect(new Set(seen.map(({ topic }) => topic))).toEqual(new Set(['ivm.events.slice']))
    expect(seen.map(({ value }) => JSON.parse(value ?? '').v)).toEqual(versions)
  })

  test('I4 a transaction that is rolled back publishes nothing', async () => {
    const lost = insert('RawDataIngested', 'raw_data', 'faulty:1', '{"version": 1}')
    const kept = insert('RawDataIngested', 'raw_data', 'faulty:1', '{"version": 2}')
    await mariadb.sql(`use shop; begin; ${lost} rollback; begin; ${kept} commit;`)
    const seen = await arrived(records, 'faulty:', 1)
    expect(seen.map(({ value }) => JSON.parse(value ?? '').version)).toEqual([2])
  })

  test('I4 what is deleted publishes nothing', async () => {
    await mariadb.sql(`use shop; ${insert('RawDataIngested', 'raw_data', 'old:1', '{}')}`)
    await arrived(records, 'old:', 1)
    await mariadb.sql("delete from shop.outbox_event where aggregate_id = 'old:1'")
    await mariadb.sql(`use shop; ${insert('RawDataIngested', 'raw_data', 'old:2', '{}')}`)
    const seen = await arrived(records, 'old:', 2)
    expect(seen.map(({ key }) => key)).toEqual(['old:1', 'old:2'])
  })

  test('I4 the payload is expanded by the router where that is asked for', async () => {
    await using expanded = await readTopics(kafka.bootstrap, ['expanded.raw_data'])
    const options = ['--topic-prefix', 'expanded', '--payload', 'expanded', '--server-id', '54002']
    await register('expanded', options)
    const payload = '{"tenantId": "tenant-1", "version": 3, "none": null, "nested": {"price": 1.5}}'
    await mariadb.sql(`use shop; ${insert('RawDataIngested', 'raw_data', 'expanded:1', payload)}`)
    const [record] = await arrived(expanded, 'expanded:', 1)
    expect(JSON.parse(record?.value ?? '')).toEqual(JSON.parse(payload))
    expect(record?.headers['eventType']).toBe('RawDataIngested')
  })

  test('I4 rows from before the connector are sent too where that is asked for', async () => {
    await mariadb.sql(`use shop; ${insert('Old', 'late', 'late:1', '{}')}`)
    await using late = await readTopics(kafka.bootstrap, ['late.events.late'])
    await register('late', ['--existing', '--topic-prefix', 'late.events', '--server-id', '54003'])
    const [record] = await arrived(late, 'late:', 1)
    expect(late.all.map(({ key, value }) => ({ key, value }))).toEqual([{ key: 'late:1', value: '{}' }])
    expect(new Date(record?.headers['occurredAt'] ?? '')).toEqual((await written('late:1')).occurredAt)
  })
})
